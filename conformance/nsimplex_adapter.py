"""nsimplex as check.py calls it."""

import nsimplex


def call(query, keys, values, options, tensors):
    options = dict(options)
    scale = options.pop("logit_scale"), options.pop("output_scale")
    window = [tuple(pair) for pair in options.pop("window")]
    more = {
        name: tensors[name]
        for name in ("key_lengths", "cu_seqlens", "mask", "sink")
        if name in tensors
    }
    if "key_mask.0" in tensors:
        more["key_masks"] = [tensors[f"key_mask.{m}"] for m in range(len(keys))]
    return nsimplex.attention(
        query, keys, values, window=window, scale=scale, return_lse=True, **options, **more
    )
