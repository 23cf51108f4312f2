// Meshes of zones with nodes at their corners: two layers of nodes before the real ones in each direction, one after.

#pragma once

#include "leo.h"

struct Mesh {
    Index side, row, plane, nodes, first, last;
    // As many zones in each direction.
    Mesh(Index zones, int dimensions) {
        side = zones + 4;
        row = side;
        plane = dimensions == 3 ? side * side : 0;
        nodes = side * side * (dimensions == 3 ? side : 1);
        first = at(1, 1, 1);
        last = at(zones + 2, zones + 2, zones + 2);
    }
    Index at(Index x, Index y, Index z) const { return x + y * row + z * plane; }
    std::vector<Index> zones(int dimensions) const {
        std::vector<Index> list;
        for (Index z = 2; z < (dimensions == 3 ? side - 2 : 3); ++z)
            for (Index y = 2; y < side - 2; ++y)
                for (Index x = 2; x < side - 2; ++x) list.push_back(at(x, y, z));
        return list;
    }
};
