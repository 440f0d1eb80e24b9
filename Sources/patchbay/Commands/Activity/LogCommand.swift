import ArgumentParser
import Client
import Model

struct LogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Show the log of an app on an Android phone, or of a whole phone.",
        discussion: """
            The lines come over adb, without secrets. The client of a grant sees those of its apps, and only an owner \
            those of a whole phone. Times are the phone's. A reader that is too slow loses the oldest lines, and is told so.

            The log of Patchbay itself is at patchbay logs.

              patchbay log shop-pixel-8
              patchbay log shop-pixel-8 --follow
              patchbay log android-R58M12ABCDE --lines 500
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The endpoint by ID, name or app, or the phone by UDID or name.",
            valueName: "endpoint-or-phone"
        ),
        completion: .objects(.endpointsAndDevices)
    )
    var subject: String
    @Flag(name: [.short, .long], help: "Go on with new lines until Ctrl-C, also after a replug or a relaunch.")
    var follow = false
    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("Show this number of past lines. Default: 100.", valueName: "count")
    )
    var lines = 100
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    private static let maxLines = 10_000
    private static let nothingAsked = "0 lines were asked for; with --follow, only new lines are shown"

    func validate() throws {
        guard (0...Self.maxLines).contains(lines) else {
            throw ValidationError("--lines must be from 0 to \(Self.maxLines).")
        }
    }

    func run() async throws {
        let client = try options.client
        let chosen = try await LogSubjectSelector(text: subject).choose(client)
        let printer = LogPrinter(isJSON: format.json, output: options.output, errors: .errors())
        guard follow else {
            let past = try await client.logs.lines(of: chosen, count: lines)
            for line in past { try printer.show(.line(line)) }
            if past.isEmpty, !format.json { printer.note(lines == 0 ? Self.nothingAsked : "no lines yet") }
            return
        }
        var isFirst = true
        let stream = RetryingStream { text in printer.note(text) }
        try await stream.run { answered in
            // Past lines were shown already. Those that were logged while the broker was away are not.
            try await client.logs.follow(chosen, count: isFirst ? lines : 0) {
                answered()
                isFirst = false
            } _: {
                try printer.show($0)
            }
        }
    }
}

/// Resolves the argument of `patchbay log`: an endpoint, or a phone.
struct LogSubjectSelector {
    let text: String

    /// - Throws: `CLIError`, `ClientError`.
    func choose(_ client: PatchbayClient) async throws -> LogClient.Subject {
        try choose(among: try await client.endpoints().endpoints, try await client.devices())
    }

    /// Selects an endpoint by its own names, else a phone by its name or UDID. The UDID of a phone never means an app on it.
    ///
    /// - Throws: `CLIError`.
    func choose(among endpoints: [Endpoint], _ devices: [Device]) throws(CLIError) -> LogClient.Subject {
        let phones = DeviceSelector(text: text, command: "patchbay log UDID")
        let isPhone = UDID(text) != nil || devices.contains { DeviceSelector.matches(text, $0.udid) }
        if isPhone, !endpoints.contains(where: { $0.isCalled(text) }) {
            return .device(try phones.choose(among: devices))
        }
        do {
            return .endpoint(try EndpointSelector(text: text, command: "patchbay log").choose(among: endpoints).id)
        } catch {
            guard error.status == .notFound, let udid = try? phones.choose(among: devices) else { throw error }
            return .device(udid)
        }
    }
}

/// Prints the lines of a log as text or JSON, and everything else to standard error.
struct LogPrinter {
    let isJSON: Bool
    let output: Console
    let errors: Console

    func show(_ event: PhoneLogEvent<PhoneLogLine>) throws {
        switch event {
        case .line(let line) where isJSON: try output.jsonLine(line)
        case .line(let line): try output.line(Self.style(of: line).paint(line.description, isOn: output.isColoured))
        case .lost(let count):
            note("\(count) lines were dropped here, because this reader is slower than the phone")
        case .note(let text): note(text)
        }
    }

    func note(_ text: String) { try? errors.line(text) }

    private static func style(of line: PhoneLogLine) -> ANSIStyle {
        switch line.level.text {
        case "E", "F": .red
        case "W": .yellow
        default: .plain
        }
    }
}
