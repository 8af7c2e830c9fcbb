"""torchvision's models, transforms and boxes, without its C++ operators."""

import torch
import torchvision
from torchvision import models, transforms
from torchvision.transforms import v2

from ..helpers import data, fill, integers, numbers, train


def run():
    x, y, result = data(2, 3, 32, 32), integers(4, 2), {}
    for name in ("resnet18", "mobilenet_v2", "squeezenet1_1", "efficientnet_b0", "densenet121", "shufflenet_v2_x0_5"):
        model = fill(models.get_model(name, weights=None, num_classes=4), scale=0.05)
        model.eval()
        result[name] = train(model, lambda model=model: torch.nn.functional.cross_entropy(model(x), y), steps=2, lr=0.001)
    image = (data(3, 20, 24).sigmoid() * 255).to(torch.uint8)
    change = transforms.Compose([transforms.Resize((16, 16), antialias=True), transforms.CenterCrop(12), transforms.ConvertImageDtype(torch.float32),
                                 transforms.Normalize([0.5] * 3, [0.2] * 3), transforms.RandomHorizontalFlip(1.0)])
    newer = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Grayscale(3), v2.Pad(2), v2.RandomRotation((30, 30))])
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [2.0, 1.0, 12.0, 9.0], [20.0, 20.0, 30.0, 35.0]])
    result["transforms"] = numbers(change(image), newer(image), transforms.functional.adjust_hue(image, 0.2).float(),
                                   transforms.functional.gaussian_blur(image.float(), 3), transforms.functional.affine(image.float(), 20.0, [1, 2], 1.1, [5.0]))
    result["boxes"] = numbers(torchvision.ops.box_iou(boxes, boxes), torchvision.ops.generalized_box_iou(boxes, boxes.flip(0)),
                              torchvision.ops.sigmoid_focal_loss(data(3, 2), data(3, 2, seed=1).sigmoid(), reduction="mean"))
    result["grid"] = numbers(torchvision.utils.make_grid(data(5, 3, 6, 6), nrow=3, normalize=True))
    return result
