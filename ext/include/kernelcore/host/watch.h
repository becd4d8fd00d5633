// What a long walk asks on its way: whether it shall go on.
//
// A watch has `bool after(index_t work)`, called between pieces of so many entries times operations;
// false: stop, what is computed will not be used.
#pragma once

#include "../config.h"

namespace kc {

struct unwatched {
    KC_HD bool after(index_t) const { return true; }
};

}  // namespace kc
