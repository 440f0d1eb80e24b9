import ArgumentParser
import Client
import Devices
import FoundationEssentials
import Model
import SystemIO

struct UsbmuxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "usbmux",
        abstract: "Show one phone to tools that only know usbmuxd.",
        discussion: """
            Serves a usbmuxd-compatible socket that lists this phone alone, until Ctrl-C. The phone may also be on \
            the cable of another machine. Each connection goes through the broker, with its leases and the limits of \
            the grant. The socket stays while the phone is unplugged and while the broker restarts.

              patchbay usbmux 00008101-000123456789ABCD --socket /tmp/phone
              patchbay usbmux 00008101 --socket /tmp/phone --broker lab
              USBMUXD_SOCKET_ADDRESS=UNIX:/tmp/phone iproxy 2222:22

            A pair record is a secret of the machine that is paired with the phone. The socket gives the record of \
            this machine's usbmuxd, if your user can read it, and no record of another machine. Without a record, \
            tools such as ideviceinfo must pair first. iproxy, inetcat and idevice_id need none.
            """
    )

    @Argument(
        help: ArgumentHelp("Show this phone: a UDID, its beginning, or a name.", valueName: "phone"),
        completion: .objects(.devices)
    )
    var phone: String
    @Option(
        help: ArgumentHelp("Create this Unix socket; only your own user can connect.", valueName: "path"),
        completion: .file()
    )
    var socket: String
    @OptionGroup var options: BrokerOptions

    func validate() throws {
        if socket.isEmpty { throw ValidationError("--socket needs the path of a new socket.") }
    }

    func run() async throws {
        let client = try options.client
        let path = socket.hasPrefix("/") ? socket : FileManager.default.currentDirectoryPath + "/" + socket
        let udid = try await DeviceSelector(text: phone, command: "patchbay usbmux UDID --socket \(socket)")
            .choose(client, platform: .ios)
        let (output, errors, hint) = (options.output, Console.errors(), BrokerHint(broker: options.broker))
        let server = try DeviceSocketServer(
            of: udid,
            at: path,
            client: client,
            usbmuxd: ProcessInfo.processInfo.environment
        ) { failure in
            try? errors.line(hint.completed(failure.description))
        }
        try await server.checkAccess()
        do {
            try await SignalHandler.cancelOnSignal {
                try await server.run(log: { try? errors.line($0) }) { isAttached in
                    try output.line("UNIX:\(path) -> \(udid)")
                    guard !isAttached else { return }
                    try? errors.line("\(udid) is not attached; the socket shows it when it is plugged in")
                }
            }
        } catch is CancellationError {
            throw ExitCode(ExitStatus.interrupted.rawValue)
        }
    }
}
