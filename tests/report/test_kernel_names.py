"""Kernel names in a column."""

from __future__ import annotations

from hotloop.report.content.kernel_names import columns


def test_return_types_and_parameters_are_left_out() -> None:
    names = [
        "void at::native::vectorized_elementwise_kernel<4, Fill<float>>(int, Fill<float>)",
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(Params)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "Memcpy HtoD (Pageable -> Device)",
        "sgemm_32x32",
    ]
    assert columns(names, 60) == [
        "vectorized_elementwise_kernel<4, Fill<float>>",
        "internal::gemvx::kernel<int, int, float>",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "Memcpy HtoD (Pageable -> Device)",
        "sgemm_32x32",
    ]


def test_names_that_begin_alike_stay_apart() -> None:
    names = [
        f"Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT{size}_MI16x16x1" for size in ("64x16", "32x32")
    ]
    shown = columns([*names, "Cijk_Ailk_" + "x" * 60], 38)
    assert shown == [
        "Cijk_Alik_Bl…rgs_MT64x16_MI16x16x1",
        "Cijk_Alik_Bl…rgs_MT32x32_MI16x16x1",
        "Cijk_Ailk_" + "x" * 27 + "…",
    ]
    assert all(len(name) <= 38 for name in shown)


def test_what_is_damaged_is_still_a_name() -> None:
    assert columns(["", "<<<", ")))", "a b ", "(x)"], 10) == ["", "<<<", ")))", "a b ", "(x)"]
