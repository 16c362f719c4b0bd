// Declared in cuda_pipeline.h here.
#pragma once
#include "cuda_pipeline.h"
