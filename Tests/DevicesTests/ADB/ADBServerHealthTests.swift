import FoundationEssentials
import Model
import Testing

@testable import Devices

@Suite struct ADBServerHealthTests {
    private let address = ServerAddress.tcp(host: "127.0.0.1", port: 5037)

    @Test func `a bench without a server has no problem, unless the configuration names one`() {
        var health = ADBServerHealth()
        #expect(health.status(of: address, isRequired: false).state == .starting)
        let isLoss = health.end(.absent(address))
        #expect(!isLoss)

        let status = health.status(of: address, isRequired: false)
        #expect(status.state == .off && !status.isDegraded)
        let required = health.status(of: address, isRequired: true)
        #expect(required.state == .missing && required.hint?.contains("adb start-server") == true)
    }

    @Test func `a lost server is told from an absent one`() {
        var health = ADBServerHealth()
        health.begin(version: 41, at: .now)
        let isLost = health.end(.closed(request: "the list"))
        let isLostAgain = health.end(.absent(address))
        #expect(isLost && !isLostAgain)
        health.phones = nil
        #expect(health.status(of: address, isRequired: false).state == .off)
    }

    @Test func `servers of two versions that replace each other are named`() {
        var health = ADBServerHealth()
        let now = ContinuousClock.now
        for (step, version) in [41, 39, 41, 39].enumerated() {
            #expect(health.status(of: address, isRequired: false).hint == nil)
            health.begin(version: version, at: now + .seconds(10 * step))
        }
        let status = health.status(of: address, isRequired: false)
        #expect(status.detail.contains("versions 41 and 39") && status.hint != nil)

        // Each also ends the other one, so there is none for a moment.
        let isLost = health.end(.absent(address))
        health.phones = nil
        let absence = health.status(of: address, isRequired: true)
        #expect(isLost && absence.detail.contains("versions 41 and 39") && absence.hint == status.hint)

        health.begin(version: 39, at: now + .seconds(600))
        #expect(health.status(of: address, isRequired: false).hint == nil)
    }

    @Test func `two phones with one serial are named`() throws {
        var health = ADBServerHealth()
        health.begin(version: 41, at: .now)
        let device = Device(udid: try #require(UDID(androidSerial: "S1")), transport: .usb, attachedAt: Date())
        health.phones = [device]
        #expect(health.status(of: address, isRequired: false).detail.contains("1 phone"))
        health.sharedSerials = [device.udid]
        let status = health.status(of: address, isRequired: false)
        #expect(status.isDegraded && status.detail.contains("serial S1"))
    }

    @Test func `fifty lists are read at once, then twenty a second`() {
        var (budget, now) = (ADBListBudget(), ContinuousClock.now)
        #expect((1...50).allSatisfy { _ in budget.pause(at: now) == nil })
        for _ in 0..<100 {
            let pause = budget.pause(at: now)
            #expect(pause == .milliseconds(50))
            now += pause ?? .zero
        }
        now += .seconds(10)
        #expect((1...50).allSatisfy { _ in budget.pause(at: now) == nil })
    }

    @Test func `pauses are short for a minute, then 10 s, and short again after a run of a server`() {
        var pauses = ADBServerPauses()
        var total = Duration.zero
        while total < .seconds(60) {
            let pause = pauses.next(after: .zero)
            #expect(pause <= .seconds(1))
            total += pause
        }
        let late = pauses.next(after: .zero)
        let first = pauses.next(after: .seconds(5))
        #expect(late == .seconds(10) && first == .milliseconds(5))
    }
}
