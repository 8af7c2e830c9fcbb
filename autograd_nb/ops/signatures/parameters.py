"""What type a parameter has follows from its name, as PyTorch's names are consistent; functions say where theirs differs.

The types are texts for the generated stubs: ``_int`` and the like are Python's own types, which methods of Tensor hide; `None` is
added where it is the default. What is annotated at a function goes before these tables.
"""

from __future__ import annotations

TENSOR, OPERAND = "Tensor", "Tensor | Number | _complex"
BOOL, INT, FLOAT, STR = "_bool", "_int", "_float", "_str"
NUMBER, SIZES = "Number | _complex", "_int | Sequence[_int]"

_BY_TYPE: dict[str, str] = {
    TENSOR: """
        input self out weight A bias target index source src M indices B mask input1 input2 tensor1 tensor2
        x1 x2 tau mat2 y hx w_ih w_hh b_ih b_hh grid _random_samples vec2 b x values anchor positive negative L pivots LU_data LU_pivots
        vec batch1 batch2 query key attn_mask log_probs targets theta window LD LU v a mat1 mat vec1 real imag abs angle condition
        sorted_sequence sorter boundaries weights per_sample_weights logits var pos_weight linear_weight linear_bias in_proj_weight
        out_proj_weight out_proj_bias key_padding_mask q_proj_weight k_proj_weight v_proj_weight static_k
        static_v prob prepend append lengths offsets fweights aweights new_state the_template tensor count
    """,
    OPERAND: "other exponent min max",
    BOOL: """
        keepdim requires_grad pin_memory return_indices ceil_mode training inplace upper sym train align_corners non_blocking
        cudnn_enabled left check_errors hermitian periodic pivot accumulate include_self unbiased count_include_pad copy center
        scale_grad_by_freq sparse full swap unitriangular transpose some equal_nan descending stable sorted largest return_inverse
        return_counts out_int32 right is_causal use_input_stats log_input zero_infinity cudnn_enable density normalized onesided
        return_complex implicit as_tuple with_replacement get_infos unpack_data unpack_pivots adjoint full_matrices compute_uv increasing
        force assume_unique invert sparse_grad include_last_offset hard enable_gqa log_target recompute_scale_factor antialias
        add_zero_attn need_weights use_separate_proj_weight average_attn_weights replacement unsafe align_to_window wrap size_average
    """,
    INT: """
        groups offset dim0 dim1 dim2 axis0 axis1 diagonal niter q k r N n m n_fft hop_length win_length start_dim end_dim window_length axis start length
        step chunks row col steps num_groups num_classes minlength ignore_index blank padding_idx decimals ind storage_offset count
        embed_dim_to_check num_heads C HxW group num_samples dimension edge_order upscale_factor downscale_factor seed
        divisor_override _stacklevel low high bins correction dim
    """,
    FLOAT: """
        eps margin p momentum negative_slope alpha beta norm_type atol rtol lambd lower rcond dropout_p label_smoothing tol maxnorm min_val max_val delta
        scale d base nan posinf neginf max_norm sigma median mean std initial dx threshold rcond
    """,
    STR: """
        reduction rounding_mode interpolation_mode padding_mode mode driver UPLO indexing approximate interpolation compute_mode pad_mode
        reduce side norm device_name
    """,
    NUMBER: "value fill_value",
    SIZES: "kernel_size stride padding dilation output_size output_padding",
    "Sequence[Tensor]": "tensors",
    "_float | Sequence[_float]": "output_ratio",
    "Callable[..., _float]": "callable",
    "_int | _size": "size sizes s shape normalized_shape pad physical_layout dims split_sizes",
    "_dtype": "dtype",
    "Device": "device",
    "layout": "layout",
    "memory_format": "memory_format",
    "Generator": "generator",
    "Tensor | None": "running_mean running_var in_proj_bias bias_k bias_v",
    "Any": "data obj ndarray ext_tensor buffer names options",
}

TYPES: dict[str, str] = {name: text for text, names in _BY_TYPE.items() for name in names.split()}

#: of ``*name``
STARRED: dict[str, str] = {
    "tensors": TENSOR, "matrices": TENSOR, "size": SIZES, "sizes": SIZES, "shape": SIZES + " | _dtype", "axes": SIZES, "counts": SIZES,
    "shapes": SIZES, "args": "Any",
}  # fmt: skip
