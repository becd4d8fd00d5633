// The watch that a long computation asks whether to go on.
//
// It has `bool after(index_t work)`, called before a piece of `work` entries times operations. False
// means stop: the result will not be used.
#pragma once

#include "../config.h"

namespace kc {

struct unwatched {
    KC_HD bool after(index_t) const { return true; }
};

}  // namespace kc
