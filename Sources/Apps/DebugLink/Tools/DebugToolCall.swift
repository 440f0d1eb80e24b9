import FoundationEssentials
import Model

/// One call of a tool of one app.
struct DebugToolCall: Sendable {
    /// The size limits of the text of a state in bytes: by default, and at most.
    static let standardStateLimit = 20_000
    static let stateLimit = 1_000_000
    /// The size limit of a picture in bytes, 20 MiB. In base64 it fits into one message to the broker.
    private static let pictureLimit = 20 * 1_048_576

    let tool: DebugTool
    let arguments: JSONObject
    let app: Int
    let apps: DebugAppTable

    /// Runs the call.
    ///
    /// - Returns: The content of the result.
    /// - Throws: `DebugLinkError`, `SocketError`, `CancellationError`.
    func run() async throws -> [JSON] {
        let known = tool.parameters.map(\.name)
        if let unknown = arguments.members.map(\.name).first(where: { !known.contains($0) }) {
            throw DebugLinkError.invalidArgument(unknown, "is unknown to \(tool.rawValue); it has \(known)")
        }
        let source = try await source()
        switch tool {
        case .states: return [.text(try await states(of: source).text)]
        case .state: return try await state(of: source)
        case .diff: return [.text(try await diff(of: source).text)]
        case .shot: return [try await picture(of: source)]
        case .sendState:
            let number = try required("number")
            try await apps.send(state: number, to: app)
            return [.text("state \(number) was sent to the app")]
        }
    }

    // MARK: The tools

    private func states(of app: Int) async throws -> JSON {
        let described = try await apps.app(app)
        let states = try await apps.states(of: app).map { state in
            var object: JSONObject = [
                "number": .number(JSONNumber(state.number)), "time": .string(state.receivedAt.ISO8601Format()),
                "bytes": .number(JSONNumber(state.bytes)), "picture": .string(state.picture.text),
            ]
            object["action"] = state.action.map { .string($0.text) }
            return JSON.object(object)
        }
        return [
            "connectedAt": .string(described.connectedAt.ISO8601Format()), "connected": .bool(described.isConnected),
            "droppedStates": .number(JSONNumber(described.droppedStates)), "states": .array(states),
        ]
    }

    private func state(of app: Int) async throws -> [JSON] {
        let limit = try integer("limit") ?? Self.standardStateLimit
        guard (1...Self.stateLimit).contains(limit) else {
            throw DebugLinkError.invalidArgument("limit", "is \(limit); it must be 1 to \(Self.stateLimit)")
        }
        let pointer = try pointer()
        let number = try await stateNumber(of: app)
        let bytes =
            if let pointer {
                try await apps.value(at: pointer, inState: number, of: app).bytes[...]
            } else {
                try await apps.state(number, of: app)
            }
        guard bytes.count > limit else { return [.text(String(decoding: bytes, as: UTF8.self))] }
        return [
            .text(String(decoding: bytes.prefix(limit), as: UTF8.self)),
            .text(
                "The first \(limit) of \(bytes.count) bytes. Pass a pointer to one value, or a larger limit."
            ),
        ]
    }

    private func diff(of app: Int) async throws -> JSON {
        let diff = try await apps.diff(fromState: required("from"), to: required("to"), of: app)
        let changes = diff.changes.map { change in
            var object: JSONObject = ["pointer": .string("\(change.pointer)")]
            object["before"] = change.before.map { .string($0) }
            object["after"] = change.after.map { .string($0) }
            return JSON.object(object)
        }
        return ["changes": .array(changes), "omittedChanges": .number(JSONNumber(diff.omittedChanges))]
    }

    private func picture(of app: Int) async throws -> JSON {
        let number = try await pictureNumber(of: app)
        let picture = try await apps.picture(ofState: number, of: app)
        guard picture.count <= Self.pictureLimit else {
            throw DebugLinkError.pictureTooLarge(state: number, bytes: picture.count, limit: Self.pictureLimit)
        }
        let mimeType = picture.starts(with: [0xFF, 0xD8]) ? "image/jpeg" : "image/png"
        return ["type": "image", "data": .string(Data(picture).base64EncodedString()), "mimeType": .string(mimeType)]
    }

    /// The number of the requested state; without a number, of the newest one.
    private func stateNumber(of app: Int) async throws -> Int {
        if let number = try integer("number") { return number }
        guard let newest = try await apps.states(of: app).last else { throw DebugLinkError.noSuchState(1, held: nil) }
        return newest.number
    }

    /// The number of the state with the requested picture; without a number, of the newest one that has a picture.
    private func pictureNumber(of app: Int) async throws -> Int {
        if let number = try integer("number") { return number }
        let states = try await apps.states(of: app)
        let withPicture = states.last { if case .held = $0.picture { true } else { false } }
        if let withPicture { return withPicture.number }
        if let invalid = states.last(where: { $0.picture == .invalid }) {
            throw DebugLinkError.invalidPicture(state: invalid.number)
        }
        throw DebugLinkError.noPictures
    }

    // MARK: Arguments and results

    /// The number of the connection whose states are read.
    private func source() async throws -> Int {
        switch arguments["previous"] {
        case nil, false?: return app
        case true?: return try await apps.previousLaunch(of: app)
        default: throw DebugLinkError.invalidArgument("previous", "must be true or false")
        }
    }

    private func integer(_ name: String) throws(DebugLinkError) -> Int? {
        guard let value = arguments[name] else { return nil }
        guard let number = value.int else { throw .invalidArgument(name, "must be a whole number") }
        return number
    }

    private func pointer() throws(DebugLinkError) -> JSONPointer? {
        guard let value = arguments["pointer"] else { return nil }
        guard let pointer = value.string.flatMap({ JSONPointer($0) }) else {
            throw .invalidArgument("pointer", "is no JSON pointer; write it like /user/name")
        }
        return pointer
    }

    private func required(_ name: String) throws(DebugLinkError) -> Int {
        guard let number = try integer(name) else { throw .invalidArgument(name, "is missing; pass a state's number") }
        return number
    }
}

extension DebugStateSummary.Picture {
    /// The word for lists: `none`, `held`, `dropped` or `invalid`.
    fileprivate var text: String {
        switch self {
        case .none: "none"
        case .held: "held"
        case .dropped: "dropped"
        case .invalid: "invalid"
        }
    }
}
