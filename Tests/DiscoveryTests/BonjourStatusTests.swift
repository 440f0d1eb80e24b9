import Model
import Testing

@testable import Discovery

@Suite struct BonjourStatusTests {
    @Test func `a missing component is reported with the command that installs or starts it`() {
        let bonjour = BonjourStatus(isInstalled: { false })
        bonjour.report(.connecting)
        #expect(bonjour.status.state == .missing)
        #expect(bonjour.status.hint == "sudo apt install avahi-daemon")

        let installed = BonjourStatus(isInstalled: { true })
        installed.report(.connecting)
        #expect(installed.status.hint == "sudo systemctl start avahi-daemon")
        installed.report(.disconnected(reason: "Daemon not running"))
        #expect(installed.status.state == .missing)
        #expect(installed.status.detail.contains("D-Bus"))
    }

    @Test func `a running source reports its counts`() {
        let bonjour = BonjourStatus(isInstalled: { true })
        bonjour.report(
            .running,
            counts: ServiceCounter.Counts(found: 5, resolved: 3, failed: 1, refused: 1),
            advertised: 2
        )

        #expect(bonjour.status.state == .ok)
        #expect(bonjour.status.detail == "5 services found, 3 resolved, 1 failed, 1 refused; 2 advertised")
        #expect(bonjour.status.hint == nil)
    }

    @Test func `a network too large for Avahi's cache is reported`() {
        let bonjour = BonjourStatus(isInstalled: { true })
        bonjour.report(.running, counts: ServiceCounter.Counts(found: 800, resolved: 800))

        #expect(bonjour.status.detail.contains("cache-entries-max"))
    }
}
