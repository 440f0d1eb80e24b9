import ArgumentParser
import Client
import FoundationEssentials
import Model

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the attached phones.",
        discussion: """
            In a team, lists the phones of all hosts. HOST is the host that a connection uses; +1 means one more host.

            --device accepts the UDID, a unique prefix of at least four digits, or a unique name.

              patchbay devices
              patchbay devices --watch
              patchbay devices note 00008030-000D9C2E0C41802E --label "drawer 3"
            """,
        subcommands: [DeviceListCommand.self, DeviceNoteCommand.self],
        defaultSubcommand: DeviceListCommand.self
    )
}

struct DeviceListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the attached phones.",
        discussion: """
              patchbay devices --json
            """,
        aliases: ["ls"]
    )

    @Flag(help: "Print each attached and detached phone until Ctrl-C.")
    var watch = false
    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if watch, format.quiet { throw ValidationError("--watch and --quiet exclude each other.") }
    }

    func run() async throws {
        let output = options.output
        if watch {
            let feed = WatchPrinter(
                endpoints: nil,
                isJSON: format.json,
                output: output,
                errors: .errors()
            )
            return try await feed.run(options.client)
        }
        let devices = try await options.client.devices()
        if format.json { return try output.document(ListResponse(devices)) }
        if format.quiet { return try output.ids(Set(devices.map(\.udid)).sorted().map(\.text)) }
        guard !devices.isEmpty else {
            if try await MissingDeviceExplanation(options.client).isOff {
                return try output.line("Phones are turned off by devices.enabled = false in the configuration.")
            }
            return try output.line(
                "No phones. Plug in a phone, unlock it and trust this computer. `patchbay doctor` checks usbmuxd."
            )
        }
        try output.table(DevicesCommand.table(of: devices))
        let hosts = devices.flatMap { ($0.routes ?? []).map(\.host) }
        if let note = TeamText.staleNote(on: hosts) { try output.line("\n\(note)") }
        for device in devices {
            if let hint = device.state.hint { try output.line("\n\(device.udid) is \(device.state.rawValue): \(hint)") }
        }
    }
}

extension DevicesCommand {
    static func table(of devices: [Device], now: Date = Date()) -> Table {
        Table(
            of: devices.sorted { $0.udid < $1.udid },
            [
                .init("UDID", \.udid.text), .init("NAME") { $0.name?.text ?? "-" },
                .init("VIA", .optional, \.transport.rawValue),
                .init("STATE", isShown: devices.contains { $0.state != .ready }) { .init($0.state.rawValue) },
                .init("PAIRED", isShown: devices.contains { $0.isPaired == false }) {
                    .init($0.isPaired.map { $0 ? "yes" : "no" } ?? "-")
                },
                .init("PLATFORM", isShown: devices.contains { $0.platform != .ios }) { .init($0.platform.name) },
                .init("PRODUCT", product),
                .init(
                    "HOST",
                    isShown: devices.contains { $0.routes != nil },
                    cells: { device in
                        TeamText.cell(of: device.routes ?? [], now: now)
                    }
                ),
                .init("LABEL", .wraps, isShown: devices.contains { $0.label != nil }) { $0.label?.text ?? "-" },
                .init("NOTE", .wraps, isShown: devices.contains { $0.note != nil }) { $0.note?.text ?? "-" },
                .init("SINCE", .optional, style: { _ in .dim }) { Formatting.ago($0.attachedAt, now: now) },
            ]
        )
    }

    /// The model and the version of its system, or the USB product ID of a phone that reports neither.
    private static func product(of device: Device) -> String {
        let words = [device.productType, device.productVersion].compactMap { $0?.text }
        guard words.isEmpty else { return words.joined(separator: " ") }
        return device.productID.map { "0x" + String($0, radix: 16) } ?? "-"
    }
}
