import Model
import TestSupport

/// A simulated phone under the real usbmuxd with a broker, and apps that come and go on its probed ports.
struct AppPhone {
    static let udid = "00008030-001A2B3C4D5E6F70"

    let broker: RunningBroker
    /// The address on which the phone's apps listen.
    let address: String
    /// The ports that the broker probes.
    let ports: [UInt16]
    let rig: UsbmuxdFixture
    let options: PhoneOptions
    private let scratch: ScratchFolder

    init(in scratch: ScratchFolder) async throws {
        self.scratch = scratch
        address = PhoneOptions.loopback
        ports = [9_876, 8_765, 9_877]
        rig = try await UsbmuxdFixture(in: scratch)
        var options = PhoneOptions.usual
        options.address = address
        self.options = options
        broker = try await RunningBroker(
            in: scratch,
            phones: rig,
            configuration: "[api]\ntcp = false\n[devices]\nprobe_ports = \(ports)\n"
        )
        try await rig.attach(Self.udid, options)
    }

    /// Starts an app on one of the ports, by its position in `ports`.
    func launch(
        _ bundle: String,
        mode: SampleMode = .ios,
        token: String? = nil,
        boot: String = "",
        isNamed: Bool = false,
        at position: Int = 0
    ) async throws -> SampleApp {
        try await SampleApp(
            bundle,
            mode: mode,
            token: token,
            boot: boot,
            isNamed: isNamed,
            address: address,
            port: ports[position],
            in: scratch
        )
    }

    /// Waits until exactly one endpoint is online, and returns it.
    func endpoint(_ comment: String = "the app is online") async throws -> Endpoint {
        try await eventually(comment) {
            let online = try await broker.endpoints().filter { $0.state == .online }
            return online.count == 1 ? online.first : nil
        }
    }

    /// Calls a tool. Returns whether the command succeeded, and everything that it printed.
    func call(_ id: EndpointID, _ tool: String = "launch_context") async throws -> (isAccepted: Bool, log: String) {
        let call = try await broker.start("call", id.text, tool, "--wait", "2s")
        return (try await call.exitStatus() == .exited(0), call.log)
    }
}

extension SampleApp {
    /// The tokens that the app received, in order.
    var receivedTokens: [String] {
        program.output.filter { $0.hasPrefix("token: ") }.map { String($0.dropFirst("token: ".count)) }
    }
}
