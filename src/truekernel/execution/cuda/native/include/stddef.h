// NVRTC knows what device code may use of this header by itself.
#pragma once
