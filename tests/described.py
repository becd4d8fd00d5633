"""Networks of the oracle, built of the package's layers."""

from oracle import networks, spatial

import kernelcore as kc


def build(network):
    """The same layers of ours; filters of images in the short form where there is one."""

    def short(sizes):
        return sizes[0] if len(set(sizes)) == 1 and len(sizes) == 2 else sizes

    layers = []
    for layer in network:
        if isinstance(layer, networks.Residual):
            layers.append(kc.Residual(*build(layer.branch), shortcut=tuple(build(layer.shortcut))))
        elif isinstance(layer, networks.Act):
            layers.append(getattr(kc, layer.name)(*layer.params, shift=layer.shift))
        elif isinstance(layer, spatial.DotProduct):
            layers.append(kc.DotProduct(getattr(kc.profiles, layer.profile)(*layer.params)))
        elif isinstance(layer, (spatial.Conv, spatial.AvgPool)):
            window, stride, *rest = layer
            layers.append(getattr(kc, type(layer).__name__)(short(window), short(stride), *rest))
        else:
            layers.append(getattr(kc, type(layer).__name__)(*layer))
    return layers
