import Testing

@testable import Tunnels

@Suite struct FileDescriptorBudgetTests {
    @Test func `a sufficient descriptor limit gives no warning`() {
        let budget = FileDescriptorBudget(wanted: 2_000, limit: 65_536)

        #expect(budget.connections == 2_000)
        #expect(budget.warning == nil)
    }

    @Test func `a low descriptor limit reduces the connections and warns with the required limit`() {
        let budget = FileDescriptorBudget(wanted: 2_000, limit: 1_024)

        #expect(budget.connections == 384)
        #expect(budget.warning?.contains("4256") == true)
        #expect(FileDescriptorBudget(wanted: 2_000, limit: 4_256).warning == nil)
    }

    @Test func `a tiny descriptor limit leaves some connections`() {
        #expect(FileDescriptorBudget(wanted: 2_000, limit: 64).connections == 16)
    }
}
