import Model
import Testing

@testable import Discovery

@Suite struct BonjourStatusTests {
    @Test func `what is missing is said with what to type`() {
        let health = BonjourStatus(isInstalled: { false })
        health.report(.connecting)
        #expect(health.status.state == .missing)
        #expect(health.status.remedy == "sudo apt install avahi-daemon")

        let installed = BonjourStatus(isInstalled: { true })
        installed.report(.connecting)
        #expect(installed.status.remedy == "sudo systemctl start avahi-daemon")
        installed.report(.disconnected(reason: "Daemon not running"))
        #expect(installed.status.state == .missing)
        #expect(installed.status.detail.contains("D-Bus"))
    }

    @Test func `a source that works counts what it sees`() {
        let health = BonjourStatus(isInstalled: { true })
        health.report(
            .running,
            counts: ServiceTable.Counts(found: 5, resolved: 3, failed: 1, refused: 1),
            advertised: 2
        )

        #expect(health.status.state == .ok)
        #expect(health.status.detail == "5 services found, 3 resolved, 1 failed, 1 refused; 2 advertised")
        #expect(health.status.remedy == nil)
    }

    @Test func `a network too large for Avahi's cache is told`() {
        let health = BonjourStatus(isInstalled: { true })
        health.report(.running, counts: ServiceTable.Counts(found: 800, resolved: 800))

        #expect(health.status.detail.contains("cache-entries-max"))
    }
}
