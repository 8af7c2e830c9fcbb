"""What neural networks are made of: convolutions, pools, norms, losses, attention, recurrent layers."""
