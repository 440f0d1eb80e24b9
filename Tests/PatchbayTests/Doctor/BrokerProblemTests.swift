import FoundationEssentials
import Model
import Samples
import Testing

@Suite struct BrokerProblemTests {
    private func status() -> BrokerStatus {
        BrokerStatus(
            version: "1",
            pid: 7,
            startedAt: Date(timeIntervalSince1970: 0),
            revision: 1,
            endpoints: [:],
            devices: 0,
            tunnels: 0,
            sources: []
        )
    }

    @Test func `a healthy broker has no problem`() {
        var status = status()
        status.sources = [
            SourceStatus(name: "bonjour", state: .ok, detail: "browsing"),
            SourceStatus(name: "usbmuxd", state: .off, detail: "turned off", hint: "x"),
        ]
        #expect(status.problems.isEmpty)
    }

    @Test func `each part has a problem with its command`() {
        var status = status()
        status.sources = [
            SourceStatus(
                name: "usbmuxd",
                state: .missing,
                detail: "not there",
                hint: "start it: `sudo systemctl start usbmuxd`"
            )
        ]
        status.findings = ["a finding"]
        status.storage = ["x.json could not be written"]

        #expect(status.problems.map(\.subject) == ["usbmuxd", "access", "state"])
        #expect(status.problems.map(\.severity) == [.information, .warning, .problem])
        #expect(
            status.problems.map(\.command) == ["sudo systemctl start usbmuxd", nil, "patchbay logs -p warning"]
        )
        #expect(Set(status.problems.map(\.id)).count == 3)
    }

    @Test func `a phone whose apps cannot be reached is a problem that names what to do`() throws {
        var device = Device(
            udid: try #require(UDID(androidSerial: "R58M12ABCDE")),
            transport: .usb,
            attachedAt: Date(timeIntervalSince1970: 0)
        )
        #expect(device.problem == nil)
        device.state = .unauthorized
        #expect(device.problem?.severity == .warning && device.problem?.hint?.contains("tap Allow") == true)
        #expect(device.problem?.text == "android-R58M12ABCDE has not allowed USB debugging from this machine")
        device.state = .noPermissions
        #expect(device.problem?.command == "sudo apt install android-sdk-platform-tools-common")
        device.state = .offline
        #expect(device.problem?.severity == .information && device.problem?.command == nil)
    }

    @Test func `a phone that is not paired is no problem, and the note says what works`() throws {
        var device = Device(udid: "00008030-001A2B3C4D5E6F70", transport: .usb, attachedAt: .distantPast)
        #expect(device.pairingNote == nil)
        device.isPaired = false
        #expect(device.problem == nil && device.pairingNote?.severity == .information)
        #expect(device.pairingNote?.text == "00008030-001A2B3C4D5E6F70 is not paired with this machine")
        #expect(device.pairingNote?.hint?.contains("tunnels need no pairing") == true)
        device.state = .locked
        #expect(device.problem != nil && device.pairingNote == nil)
    }

    @Test func `a hint in words is no command`() {
        #expect(BrokerProblem("x", .sourceDegraded, subject: "x", text: "x", hint: "unplug it").command == nil)
        let problem = BrokerProblem("x", .sourceDegraded, subject: "x", text: "x", hint: "patchbay list")
        #expect(problem.command == "patchbay list")
    }

    @Test func `a phone that a person has to unlock or to allow is a problem`() {
        func phone(_ udid: UDID, _ state: Device.State, name: String? = nil) -> Device {
            var device = Device(udid: udid, transport: .usb, attachedAt: .distantPast)
            device.state = state
            device.name = name.map { SanitizedText($0) }
            return device
        }
        let devices = [
            phone("00008030-001A2B3C4D5E6F70", .locked, name: "Anna’s iPhone"),
            phone("00008110-0011223344556677", .ready), phone("00008110-0011223344556678", .connecting),
        ]
        let problems = devices.compactMap(\.problem)
        #expect(
            problems.map(\.text) == [
                "Anna’s iPhone, 00008030-001A2B3C4D5E6F70 was not unlocked since its start",
                "00008110-0011223344556678 is being connected",
            ]
        )
        #expect(problems.first?.hint == Device.State.locked.hint)
        #expect(problems.map(\.severity) == [.warning, .information])
    }

    @Test func `a thousand pending endpoints are one line`() throws {
        let endpoints = (0..<1_000).map { number in
            Endpoint.sample(
                EndpointID(app: SanitizedText("app\(number)"), location: "lab"),
                approval: .pending,
                routes: [.network("10.0.0.7", machine: "lab.local")]
            )
        }
        let problem = try #require(endpoints.approvalProblems.first)
        #expect(endpoints.approvalProblems.count == 1)
        #expect(problem.text.hasSuffix("and 997 more") && problem.command == "patchbay list")
        #expect(problem.severity == .information)
        let one = try #require(endpoints.prefix(1).approvalProblems.first)
        #expect(one.command?.hasPrefix("patchbay approve ") == true, "\(one)")
    }
}
