import Testing

@testable import patchbayd

@Suite struct FileDescriptorBudgetTests {
    @Test func `a process that may have enough files open is not warned of`() {
        let plan = FileDescriptorBudget(wanted: 2_000, limit: 65_536)

        #expect(plan.connections == 2_000)
        #expect(plan.warning == nil)
    }

    @Test func `too few files mean fewer connections, and a warning with the figure that is enough`() {
        let plan = FileDescriptorBudget(wanted: 2_000, limit: 1_024)

        #expect(plan.connections == 384)
        #expect(plan.warning?.contains("4256") == true)
        #expect(FileDescriptorBudget(wanted: 2_000, limit: 4_256).warning == nil)
    }

    @Test func `even a tiny limit leaves some connections`() {
        #expect(FileDescriptorBudget(wanted: 2_000, limit: 64).connections == 16)
    }
}
