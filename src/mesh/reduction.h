// What a reduction makes of the ranks' values.
#pragma once

namespace ridgeline::mesh {

enum class Reduction { sum, max };

}  // namespace ridgeline::mesh
