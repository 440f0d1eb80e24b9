import CLinux
import SystemIO

/// A pipe, closed on exec at both ends.
struct Pipe: ~Copyable {
    let readEnd: Descriptor
    let writeEnd: Descriptor

    init() throws {
        var ends: [CInt] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw TestSupportError(call: "pipe2") }
        readEnd = Descriptor(owning: ends[0])
        writeEnd = Descriptor(owning: ends[1])
    }

    consuming func intoReadEnd() -> Descriptor { readEnd }

    consuming func intoWriteEnd() -> Descriptor { writeEnd }
}
