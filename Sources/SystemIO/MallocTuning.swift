import CLinux

/// The settings of malloc(3).
package enum MallocTuning {
    /// Limits what malloc(3) keeps. Called before other threads start.
    package static func apply() {
        // Freed memory of one malloc arena is not available to other threads. About a dozen threads exist, two of them
        // busy.
        CLinux_limit_heaps(2)
        // Blocks from 1 MiB on, such as screenshots, are mapped and returned to the system when freed.
        CLinux_map_blocks(1 << 20)
    }
}
