// The shim, force-included before every source, has all of it.
#pragma once
