import ArgumentParser
import Client
import Glibc
import Model

struct IproxyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "iproxy",
        abstract: "Forward ports to a phone with the command line of iproxy.",
        discussion: """
              patchbay iproxy 2222:22 8080:9876
              patchbay iproxy -u 00008101-000123456789ABCD 2222 22

            `patchbay iproxy --help` lists the options.
            """
    )

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("Pass the arguments of iproxy.", valueName: "arguments")
    )
    var arguments: [String] = []

    static let usage = """
        Usage: patchbay iproxy [OPTIONS] LOCAL_PORT:DEVICE_PORT [LOCAL_PORT2:DEVICE_PORT2 ...]

        Forward local TCP ports to ports of a phone, with the command line of iproxy 2.0.2.
        The broker opens the ports; the ports are closed when this command ends.

        OPTIONS:
          -u, --udid UDID    target specific device by UDID, or by the beginning of one
          -n, --network      choose among devices on the network
          -l, --local        choose among devices on the cable (default)
          -s, --source ADDR  source address for listening socket (default 127.0.0.1 and ::1)
          -h, --help         prints usage information
          -d, --debug        accepted; failed connections are always printed
          -v, --version      prints version information
              --socket PATH  the broker's socket (not in iproxy)
              --allow-any-user, --allow-browsers
                             accept clients of other users, and requests of web pages (not in iproxy)

        DIFFERENCES FROM iproxy:
          Without -u, waits for a phone before listening; several attached phones are an error.
          Accepts any number of pairs; invalid ports are errors and do not wrap around.
          Prints failed connections with the reason on standard error; does not print other connections.
          Exits with 2 for an invalid command line, 234 for an invalid port, and 247 if a port or an address
          cannot be listened on, like iproxy; for all other exit codes see `patchbay help exit-codes`.
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
                persistent: false,
                allowAnyUser: request.allowAnyUser,
                allowBrowsers: request.allowBrowsers
            )
        }
        for pair in request.pairs {
            try output.line("Creating listening port \(pair.local) for device port \(pair.device)")
        }
        do {
            try await EphemeralTunnels(client: client, errors: errors).run(
                specs,
                opened: { _ in try output.line("waiting for connection") },
                failed: { failure in try? errors.line("Error connecting to device: \(failure.detail)") }
            )
        } catch {
            throw Self.refusalToListen(error) ?? error
        }
    }

    /// Returns the error with iproxy's exit code 247 if a port or an address is not available; nil for other errors.
    static func refusalToListen(_ error: any Error) -> CLIError? {
        switch error {
        case ClientError.refused(let problem) where problem.code == .conflict || problem.code == .badRequest: break
        case let error as CLIError where error.status == .error: break
        default: return nil
        }
        var cliError = CLIError(describing: error, command: "patchbay iproxy")
        cliError.exitCode = 247
        // The usual hint, tcp:0, is not valid for iproxy.
        cliError.hint = "use another local port or address; `ss -ltnp` lists the listening programs"
        return cliError
    }

    /// Describes that no phone matches, and which phones the options exclude.
    static func absence(of request: IproxyArguments, _ attached: [Device]) -> String {
        guard let other = attached.first else { return "no phone is attached" }
        return switch other.transport {
        case .usb:
            "no phone is on the network (-n excludes \(Formatting.count(attached.count, "phone")) on the cable)"
        case .network:
            "no phone is on the cable (-n selects \(Formatting.count(attached.count, "phone")) on the network)"
        }
    }

    /// Selects the phone. Waits for a phone if none is attached.
    ///
    /// iproxy without -u uses the first phone at each connection, which can be the wrong one. Here several phones are an
    /// error.
    private func udid(for request: IproxyArguments, _ client: PatchbayClient, _ errors: Console) async throws -> UDID {
        let fits: (Device) -> Bool = { device in
            guard device.platform == .ios else { return false }
            return device.transport == .network ? request.takesNetwork : request.takesUSB || !request.takesNetwork
        }
        let attached = try await client.devices().filter { $0.platform == .ios }
        var devices = attached.filter(fits)
        if devices.isEmpty, request.udid == nil {
            if await MissingDeviceExplanation(client).isOff { throw MissingDeviceExplanation.off }
            try? errors.line("\(Self.absence(of: request, attached)); waiting for a phone")
            devices = try await DeviceWaiter.wait(client, errors: errors, where: fits)
        }
        let ports = request.pairs.map { "\($0.local):\($0.device)" }.joined(separator: " ")
        return try DeviceSelector(text: request.udid, command: "patchbay iproxy -u UDID \(ports)").choose(
            among: devices
        )
    }
}
