import ArgumentParser
import Client
import FoundationEssentials
import Model

struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the phones that are attached.",
        discussion: """
            By UDID, which is what --device takes; the first four digits are enough where they fit one phone only.

              patchbay devices
              patchbay devices --watch
            """
    )

    @Flag(help: "Go on with every phone that comes or goes, until Ctrl-C.")
    var watch = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let output = options.output
        if watch {
            let feed = WatchPrinter(
                selection: WatchPrinter.Selection(showsEndpoints: false),
                isJSON: format.json,
                output: output,
                errors: .errors()
            )
            return try await feed.run(options.client)
        }
        let list = try await options.client.devices()
        if format.json { return try output.document(list) }
        guard !list.devices.isEmpty else {
            if try await DeviceAvailability(options.client).isOff {
                return try output.line("Phones are turned off by devices.enabled = false in the configuration.")
            }
            return try output.line(
                "No phone is attached. Plug one in, unlock it and trust this computer; `patchbay doctor` checks usbmuxd."
            )
        }
        try output.table(Self.table(of: list.devices))
    }

    static func table(of devices: [Device], now: Date = Date()) -> Table {
        var table = Table(columns: [
            .init(title: "UDID"), .init(title: "VIA"), .init(title: "PRODUCT"), .init(title: "SINCE"),
        ])
        table.rows = devices.sorted { $0.udid < $1.udid }.map { device in
            let product = device.productID.map { "0x" + String($0, radix: 16) } ?? "-"
            return [
                .init(device.udid.text), .init(device.transport.rawValue), .init(product),
                .init(Formatting.ago(device.since, now: now), .dim),
            ]
        }
        return table
    }
}
