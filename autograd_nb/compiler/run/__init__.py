"""A captured call: when it holds, how it is run, where its time goes."""
