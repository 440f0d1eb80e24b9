import ArgumentParser
import Client
import Glibc
import Model

struct IproxyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "iproxy",
        abstract: "Forward ports to a phone with the command line of iproxy, unchanged.",
        discussion: """
              patchbay iproxy 2222:22 8080:9876
              patchbay iproxy -u 00008101-000123456789ABCD 2222 22

            `patchbay iproxy --help` lists its options.
            """
    )

    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("What iproxy takes.", valueName: "arguments"))
    var arguments: [String] = []

    static let usage = """
        Usage: patchbay iproxy [OPTIONS] LOCAL_PORT:DEVICE_PORT [LOCAL_PORT2:DEVICE_PORT2 ...]

        Binds local TCP ports and forwards them to ports of a phone, with the command line of iproxy 2.0.2.
        The broker does the work; the ports are released when this command ends.

        OPTIONS:
          -u, --udid UDID    target specific device by UDID, or by the beginning of one
          -n, --network      choose among devices on the network
          -l, --local        choose among devices on the cable (default)
          -s, --source ADDR  source address for listening socket (default 127.0.0.1 and ::1)
          -h, --help         prints usage information
          -d, --debug        accepted; failed connections are always said on standard error
          -v, --version      prints version information
              --socket PATH  the broker's socket (not in iproxy)
              --allow-any-user, --allow-browsers
                             let clients of other users, and requests of web pages, in (not in iproxy)

        What differs from iproxy:
          Without -u: while no phone is attached it waits for one before it listens; of several none is guessed.
          Any number of pairs; wrong ports are refused instead of wrapped around.
          Failed connections are said on standard error, with the reason; others are not said.
          A wrong command line ends with 2, a wrong port with 234, and a port or address that cannot be listened
          on with 247, as in iproxy; everything else is as in `patchbay help exit-codes`.
        """

    func run() async throws {
        switch try IproxyArguments.read(arguments) {
        case .help: try Console.standard().line(Self.usage)
        case .version: try Console.standard().line("iproxy 2.0.2 (patchbay \(Version.text))")
        case .forward(let request): try await forward(request)
        }
    }

    private func forward(_ request: IproxyArguments) async throws {
        let client = try GlobalOptions.client(socket: request.socket, broker: nil)
        let (output, errors) = (Console.standard(), Console.errors())
        let udid = try await udid(for: request, client, errors)
        let specs = request.pairs.map { pair in
            TunnelSpec(
                local: .tcp(host: request.source, port: pair.local),
                target: .device(udid: udid, port: pair.device),
                noRebind: true,
                isKept: false,
                allowsAnyUser: request.allowsAnyUser,
                allowsBrowsers: request.allowsBrowsers
            )
        }
        for pair in request.pairs {
            try output.line("Creating listening port \(pair.local) for device port \(pair.device)")
        }
        do {
            try await EphemeralTunnels(client: client, errors: errors).hold(
                specs,
                opened: { _ in try output.line("waiting for connection") },
                failed: { failure in try? errors.line("Error connecting to device: \(failure.detail)") }
            )
        } catch {
            throw Self.refusalToListen(error) ?? error
        }
    }

    /// The same error with iproxy's number, where a port or an address is not to be had.
    static func refusalToListen(_ error: any Error) -> CLIError? {
        switch error {
        case ClientError.refused(let problem) where problem.code == .conflict || problem.code == .badRequest: break
        case let complaint as CLIError where complaint.status == .error: break
        default: return nil
        }
        var complaint = CLIError(describing: error, command: "patchbay iproxy")
        complaint.exitCode = 247
        // What is offered to others, tcp:0, is no word of iproxy's.
        complaint.remedy = "another local port or address; `ss -ltnp` shows who listens where"
        return complaint
    }

    /// Says that no phone fits, with what does not fit.
    static func absence(of request: IproxyArguments, _ attached: [Device]) -> String {
        guard let other = attached.first else { return "no phone is attached" }
        return switch other.transport {
        case .usb:
            "no phone is on the network (\(Formatting.count(attached.count, "phone")) on the cable; -n leaves that out)"
        case .network: "no phone is on the cable (\(Formatting.count(attached.count, "phone")) on the network, for -n)"
        }
    }

    /// iproxy without -u takes the first phone of the moment at each connection; the wrong one, as soon as there are two.
    private func udid(for request: IproxyArguments, _ client: PatchbayClient, _ errors: Console) async throws -> UDID {
        let fits: (Device) -> Bool = { device in
            switch device.transport {
            case .usb: request.takesUSB || !request.takesNetwork
            case .network: request.takesNetwork
            }
        }
        let attached = try await client.devices().devices
        var devices = attached.filter(fits)
        if devices.isEmpty, request.udid == nil {
            if await DeviceAvailability(client).isOff { throw DeviceAvailability.off }
            try? errors.line("\(Self.absence(of: request, attached)); waiting for one")
            devices = try await DeviceWaiter.wait(client, errors: errors, where: fits)
        }
        let ports = request.pairs.map { "\($0.local):\($0.device)" }.joined(separator: " ")
        return try DeviceSelector(text: request.udid, command: "patchbay iproxy -u UDID \(ports)").choose(
            among: devices
        )
    }
}
