import ArgumentParser
import Client
import Model

struct AdvertiseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "advertise",
        abstract: "Publish a Bonjour service for a server on this machine.",
        discussion: """
            The service is published until the command ends (Ctrl-C). With --detach it is published until \
            `patchbay advertisements rm`. If the name is taken, Bonjour selects another name, which is printed.

            Other machines list the service, but this broker does not list its own advertisements. Use `patchbay add` \
            to list the server on this machine too.

              patchbay advertise Shop _appreveal._tcp 9876 bundleId=com.shop
              patchbay advertise "My Server" _http._tcp 8080 path=/ --detach
            """
    )

    @Argument(help: ArgumentHelp("Set the service name, 1 to 63 bytes.", valueName: "name"))
    var name: String
    @Argument(help: ArgumentHelp("Set the service type, such as _http._tcp.", valueName: "type"))
    var type: String
    @Argument(help: ArgumentHelp("Set the port of the server.", valueName: "port"), transform: PortArgument.parse)
    var port: UInt16
    @Argument(help: ArgumentHelp("Set the TXT record: key=value, key= or key.", valueName: "key=value"))
    var txt: [String] = []
    @Flag(help: "Publish the service and exit; the service stays published.")
    var detach = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let spec = try spec()
        let client = try options.client
        if detach {
            let advertisement = try await client.advertisements.publish(spec)
            return try show(advertisement)
        }
        var last: Advertisement?
        try await RetryingStream { text in try? Console.errors().line(text) }.run { answered in
            try await client.advertisements.publishEphemeral(spec) { advertisement in
                answered()
                if advertisement != last { try show(advertisement) }
                last = advertisement
            }
        }
    }

    private func spec() throws -> AdvertisementSpec {
        guard let type = ServiceType(type) else {
            throw CLIError.usage(
                "\"\(SanitizedText(type))\" is not a service type",
                try: "_http._tcp or _appreveal._tcp"
            )
        }
        let spec = AdvertisementSpec(name: name, type: type, port: port, txt: try TXTArgument.record(txt))
        if let problem = spec.validationError { throw CLIError.usage(problem, try: "patchbay advertise --help") }
        return spec
    }

    private func show(_ advertisement: Advertisement) throws {
        if format.json { return try options.output.jsonLine(advertisement) }
        try options.output.line(Self.line(advertisement))
    }

    /// Describes an advertisement: `published "Shop #2" (the name "Shop" was taken) as _appreveal._tcp on port 9876 (a1)`.
    static func line(_ advertisement: Advertisement) -> String {
        let spec = advertisement.spec
        let isRenamed = advertisement.publishedName != SanitizedText(spec.name)
        let renamed = isRenamed ? " (the name \"\(SanitizedText(spec.name))\" was taken)" : ""
        let line =
            "\(advertisement.state.rawValue) \"\(advertisement.publishedName)\"\(renamed) as \(spec.type) on port \(spec.port)"
        return "\(line) (\(advertisement.id))" + (advertisement.reason.map { ": \($0)" } ?? "")
    }
}

/// The TXT record arguments: `key=value`, `key=` for an empty value, `key` for an attribute without a value.
enum TXTArgument {
    /// Builds the TXT record.
    ///
    /// - Throws: `CLIError` for a duplicate key or an invalid record.
    static func record(_ words: [String]) throws(CLIError) -> TXTRecord {
        var record = TXTRecord()
        for word in words {
            let split = word.firstIndex(of: "=")
            let key = String(word[..<(split ?? word.endIndex)])
            if record.contains(key) {
                throw .usage("the TXT key \"\(SanitizedText(key))\" occurs twice", try: "remove one of the two")
            }
            record.set(key, to: split.map { Array(word[word.index(after: $0)...].utf8) })
        }
        if let problem = record.validationError {
            throw .usage(problem, try: "patchbay advertise Shop _http._tcp 8080 path=/ version=2")
        }
        return record
    }
}
