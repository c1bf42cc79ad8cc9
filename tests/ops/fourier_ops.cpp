// Fourier transforms.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> fourier_ops() {
  return {
      op("fft.fft", {grid()}, [](const T& a) { return at::fft_fft(a, 7, 2); })
          .not_as("empty scalar"),
      op("fft.fft2", {grid()}, [](const T& a) { return at::fft_fft2(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.fftn", {grid()}, [](const T& a) { return at::fft_fftn(a); })
          .saves_nothing()
          .not_as("empty"),
      op("fft.ifft", {grid()}, [](const T& a) { return at::fft_ifft(a, 3, 2); })
          .not_as("empty scalar"),
      op("fft.ifft2", {grid()}, [](const T& a) { return at::fft_ifft2(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.ifftn", {grid()}, [](const T& a) { return at::fft_ifftn(a); })
          .saves_nothing()
          .not_as("empty"),
      op("fft.hfft", {grid()}, [](const T& a) { return at::fft_hfft(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.hfft2", {grid()}, [](const T& a) { return at::fft_hfft2(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.hfftn", {grid()}, [](const T& a) { return at::fft_hfftn(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.ihfft", {grid()}, [](const T& a) { return at::fft_ihfft(a); }).not_as("empty scalar"),
      op("fft.ihfft2", {grid()}, [](const T& a) { return at::fft_ihfft2(a); })
          .not_as("empty scalar"),
      op("fft.ihfftn", {grid()}, [](const T& a) { return at::fft_ihfftn(a); })
          .not_as("empty scalar"),
      op("fft.rfft", {grid()}, [](const T& a) { return at::fft_rfft(a, 7, 1); })
          .not_as("empty scalar"),
      op("fft.rfft2", {grid()}, [](const T& a) { return at::fft_rfft2(a); }).not_as("empty scalar"),
      op("fft.rfftn", {grid()}, [](const T& a) { return at::fft_rfftn(a); }).not_as("empty scalar"),
      op("fft.irfft", {grid()}, [](const T& a) { return at::fft_irfft(a, 7, 1); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.irfft2", {grid()}, [](const T& a) { return at::fft_irfft2(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.irfftn", {grid()}, [](const T& a) { return at::fft_irfftn(a); })
          .saves_nothing()
          .not_as("empty scalar"),
      op("fft.fftshift", {grid()}, [](const T& a) { return at::fft_fftshift(a); })
          .saves_nothing()
          .not_as("scalar"),
      op("fft.ifftshift", {grid()}, [](const T& a) { return at::fft_ifftshift(a); })
          .saves_nothing()
          .not_as("scalar"),
      op("stft", {of({2, 30})},
         [](const T& a) {
           const T window =
               at::hann_window(8, a.options().dtype(at::toRealValueType(a.scalar_type())));
           return at::stft(a, 8, 4, 8, window, true, "reflect", false, false, true);
         })
          .not_as("empty scalar"),
      op("istft", {of({2, 5, 6})},
         [](const T& a) {
           const T window = at::ones({8}, a.options().dtype(at::toRealValueType(a.scalar_type())));
           return at::istft(a, 8, 4, 8, window);
         })
          .not_as("empty scalar"),
  };
}

}  // namespace stowage::ops
