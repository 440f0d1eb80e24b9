import TestSupport
import Testing

@testable import API

@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct OpenAPITests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    @Test(.timeLimit(.minutes(6)))
    func `openapi.json is valid, has every route, and matches every response, including errors`() async throws {
        let python = try await PythonPeers.interpreter(in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        var options = PhoneOptions.usual
        options.lockdown = try LockdownServer(name: "Anna’s iPhone", in: scratch)
        try await rig.attach(phone, options)
        // The usual port may belong to the broker of another test, and the dashboard needs a port.
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, phones: rig, configuration: "[api]\nport = \(port)\n")
        try await eventually("the phone is listed") { try await broker.ask("devices").joined().contains("Anna") }

        let script = #filePath.dropLast("OpenAPITests.swift".count) + "answers.py"
        let answers = try await Program(python, [String(script), broker.socket, phone], in: scratch)

        let status = try await answers.exitStatus(within: .seconds(60))
        for await _ in answers.transcript.elements() {}
        #expect(status == .exited(0), "\(answers.log)")
        let written = answers.output.filter { $0.hasPrefix("route ") }.map { $0.dropFirst("route ".count) }
        #expect(Set(written.map(String.init)) == Set(RouteTable.all.map { "\($0.method) \($0.path)" }))
        #expect(broker.daemon.log.contains("request failed") == false, "\(broker.daemon.log)")
    }
}
