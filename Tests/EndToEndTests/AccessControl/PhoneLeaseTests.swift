import FoundationEssentials
import Model
import TestSupport
import Testing

/// Leases of one phone whose app is reached on Wi-Fi and on the cable.
@Suite(.serialized, .needs(.root, .namespaces, .avahi, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder)
struct PhoneLeaseTests {
    private let scratch = ScratchFolder.current
    private static let phone = "00008030-001A2B3C4D5E6F70"

    /// The agent of a user, which is another holder than the user's own commands.
    private struct Agent {
        let program: Program

        init(of broker: RunningBroker) async throws {
            program = try await broker.start("mcp", input: .pipe)
            try program.write(
                #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#
                    + #""capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"# + "\n"
            )
            try await program.waitForLine(#""id":1,"#)
        }

        /// Calls a tool of the broker and returns the response.
        func call(_ tool: String, _ arguments: String, number: Int) async throws -> String {
            try program.write(
                #"{"jsonrpc":"2.0","id":\#(number),"method":"tools/call","params":{"name":"\#(tool)","#
                    + #""arguments":\#(arguments)}}"# + "\n"
            )
            return try await program.waitForLine(#""id":\#(number),"#)
        }

        func tap(_ id: EndpointID, number: Int) async throws -> String {
            let arguments = #"{"endpoint":"\#(id)","name":"tap_element","arguments":{"element_id":"buy"}}"#
            return try await call("endpoint_call", arguments, number: number)
        }
    }

    @Test func `a lease on Wi-Fi covers the cable when the link becomes known, and both after its end`() async throws {
        let network = try await MDNSNetwork(["here", "annas-iphone"], in: scratch)
        let cabled = try await SampleApp(mode: .ios, address: PhoneOptions.loopback, in: scratch)
        let (token, port) = (try #require(cabled.token), cabled.port)
        // One app listens on both interfaces of a phone. Here two programs play it.
        let wireless = try await SampleApp(mode: .ios, token: token, port: port, on: network.hosts[1], in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            on: network.hosts[0],
            configuration: "[devices]\nprobe_ports = [\(port)]\n"
        )
        _ = try await wireless.advertise(through: network.hosts[1])
        try await rig.attach(Self.phone, .ofItsOwn)
        let listed = try await eventually("both are listed") {
            let endpoints = try await broker.endpoints()
            return endpoints.count == 2 ? endpoints : nil
        }
        let cable = try #require(listed.first { $0.location.udid != nil }).id
        let wifi = try #require(listed.first { $0.location.udid == nil }).id
        _ = try await broker.ask("approve", wifi.text)
        try await broker.setSecret(token, of: cable.text)

        // The lease is taken before the broker knows that both are one phone.
        _ = try await broker.ask("lease", wifi.text)
        #expect(try await broker.endpoints().first { $0.id == cable }?.lease == nil)
        try await broker.setSecret(token, of: wifi.text)
        let phone = try await eventually("both are one endpoint") {
            let endpoints = try await broker.endpoints()
            return endpoints.count == 1 ? endpoints.first : nil
        }
        #expect(phone.id == cable && phone.lease?.isOwn == true, "\(String(describing: phone.lease))")
        #expect(phone.combinedWith?.map(\.lease?.id) == [phone.lease?.id])
        let agent = try await Agent(of: broker)
        let taps = [try await agent.tap(cable, number: 2), try await agent.tap(wifi, number: 3)]
        #expect(taps.allSatisfy { $0.contains("is leased to") }, "\(taps)")
        let port22 = #"{"action":"open","endpoint":"\#(cable)","remotePort":22}"#
        let tunnel = try await agent.call("port_forward", port22, number: 4)
        #expect(tunnel.contains("is leased to"), "\(tunnel)")
        #expect(try await agent.call("endpoint_list", "{}", number: 5).contains("leased by another client"))

        // Without the cable, the link ends. The lease still covers the app on Wi-Fi.
        try await rig.detach(Self.phone)
        try await eventually("both are separate") { try await broker.endpoints().count == 2 }
        let later = try await agent.tap(wifi, number: 6)
        #expect(later.contains("is leased to"), "\(later)")
        #expect((wireless.program.output + cabled.program.output).allSatisfy { !$0.hasPrefix("call: tap_element") })

        _ = try await broker.ask("unlease", wifi.text)
        let last = try await agent.tap(wifi, number: 7)
        #expect(wireless.program.output.contains("call: tap_element"), "\(last)")
    }
}
