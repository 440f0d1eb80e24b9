import ArgumentParser

/// The app or the apps that `patchbay mcp` serves, as the command line names them.
enum MCPSubject: Hashable, Sendable {
    /// The broker's own tools.
    case broker
    /// The tools of all apps.
    case all
    /// One endpoint, by its ID or by a short name.
    case endpoint(String)
    /// An app on any phone, by its bundle identifier or its name.
    case app(String)

    /// The arguments of `patchbay mcp` that name the subject.
    var arguments: [String] {
        switch self {
        case .broker: []
        case .all: ["--all"]
        case .endpoint(let text): ["--endpoint", text]
        case .app(let name): ["--app", name]
        }
    }
}

/// The options that select an `MCPSubject`.
struct MCPSubjectOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Serve the tools of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var endpoint: String?
    @Option(
        help: ArgumentHelp(
            "Serve the tools of this app on whatever phone it runs.",
            discussion: "A bundle identifier or an app name. If several phones run the app, the client is asked once.",
            valueName: "app"
        )
    )
    var app: String?
    @Flag(help: "Serve the tools of all apps; requires `[mcp] all = true` in the broker's configuration.")
    var all = false

    func validate() throws {
        let names = [endpoint == nil ? nil : "--endpoint", app == nil ? nil : "--app", all ? "--all" : nil]
        let given = names.compactMap(\.self)
        if given.count > 1 { throw ValidationError("\(given.joined(separator: " and ")) exclude each other.") }
        if endpoint?.allSatisfy(\.isWhitespace) == true {
            throw ValidationError("--endpoint needs an ID or a short name.")
        }
        if app?.allSatisfy(\.isWhitespace) == true {
            throw ValidationError("--app needs a bundle identifier, such as com.example.shop.")
        }
    }

    var subject: MCPSubject {
        if let endpoint { return .endpoint(endpoint) }
        if let app { return .app(app) }
        return all ? .all : .broker
    }
}
