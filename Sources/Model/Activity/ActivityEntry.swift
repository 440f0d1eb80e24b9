package import FoundationEssentials

/// One entry of the broker's activity: a call of an app's tool, or a change of an endpoint's state.
///
/// The texts of apps and clients in an entry are data. They are bounded, and without known secrets.
package struct ActivityEntry: Hashable, Sendable, Identifiable {
    package enum Content: Hashable, Sendable {
        case call(Call)
        /// A change in words, such as `offline -> online`, with the new state or `removed`.
        case change(text: String, state: String)
    }

    package enum Outcome: String, Hashable, Sendable, CaseIterable {
        /// The call waits for a lease.
        case waiting
        case running
        case ok
        /// The app reported a failure, or was not reached.
        case error
        /// The broker did not send the call, because of a permission, a lease or the arguments.
        case refused
        case cancelled
        /// The app may have executed the call, and no result arrived.
        case unknown

        /// True for a call that ended without success.
        package var isFailure: Bool { !isOpen && self != .ok }

        /// True for a call that has not ended.
        package var isOpen: Bool { self == .waiting || self == .running }
    }

    /// The client of a call.
    package struct Client: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            case user
            case grant
            /// A client of another host of the team.
            case host
        }

        package let name: SanitizedText
        package let kind: Kind
        /// The ID of the client's grant; nil without one.
        package let grant: String?
        /// The name and the version that an agent reports; nil without them.
        package let agent: SanitizedText?

        package init(name: SanitizedText, kind: Kind, grant: String? = nil, agent: SanitizedText? = nil) {
            self.name = name
            self.kind = kind
            self.grant = grant
            self.agent = agent
        }
    }

    /// The image of a result, without its bytes.
    package struct Picture: Hashable, Sendable {
        /// The size in pixels; nil for a format that Patchbay does not read.
        package let width: Int?
        package let height: Int?
        /// The size of the file in bytes.
        package let bytes: Int
        package let type: String

        package init(width: Int?, height: Int?, bytes: Int, type: String) {
            self.width = width
            self.height = height
            self.bytes = bytes
            self.type = type
        }
    }

    /// The first 2 kB of the texts of a result.
    package struct Result: Hashable, Sendable {
        package let text: String
        /// The size of all texts in bytes.
        package let bytes: Int

        package init(text: String, bytes: Int) {
            self.text = text
            self.bytes = bytes
        }
    }

    package struct Call: Hashable, Sendable {
        package var device: UDID?
        package var client: Client
        /// The ID of the client's trace (W3C Trace Context); nil without one.
        package var trace: String?
        package var tool: SanitizedText
        package var arguments: JSONObject
        /// The time for which the call waited for a lease.
        package var waitMilliseconds: Int
        /// The duration without the wait; nil until the call ends.
        package var durationMilliseconds: Int?
        package var outcome: Outcome
        package var result: Result?
        package var picture: Picture?

        package init(
            device: UDID?,
            client: Client,
            trace: String? = nil,
            tool: SanitizedText = SanitizedText(""),
            arguments: JSONObject = [:],
            waitMilliseconds: Int = 0,
            durationMilliseconds: Int? = nil,
            outcome: Outcome = .running,
            result: Result? = nil,
            picture: Picture? = nil
        ) {
            self.device = device
            self.client = client
            self.trace = trace
            self.tool = tool
            self.arguments = arguments
            self.waitMilliseconds = waitMilliseconds
            self.durationMilliseconds = durationMilliseconds
            self.outcome = outcome
            self.result = result
            self.picture = picture
        }
    }

    /// The number of the entry, which rises from 1 until the broker stops.
    package let id: UInt64
    package let at: Date
    package let endpoint: EndpointID
    package let app: SanitizedText
    package var content: Content

    package init(id: UInt64, at: Date, endpoint: EndpointID, app: SanitizedText, content: Content) {
        self.id = id
        self.at = at
        self.endpoint = endpoint
        self.app = app
        self.content = content
    }

    /// The call; nil for a change.
    package var call: Call? {
        if case .call(let call) = content { call } else { nil }
    }
}

/// Part of the activity: the response to `GET /v1/activity`.
package struct ActivityPage: Hashable, Sendable {
    /// The configured number of kept calls; 0 if the activity is turned off.
    package let limit: Int
    /// The numbers of the oldest and the newest kept entry; 0 without one.
    package let oldest: UInt64
    package let newest: UInt64
    /// The number of the last change of any entry, for `since`.
    package let revision: UInt64
    /// The entries, oldest first.
    package let entries: [ActivityEntry]

    package init(limit: Int, oldest: UInt64, newest: UInt64, revision: UInt64, entries: [ActivityEntry]) {
        self.limit = limit
        self.oldest = oldest
        self.newest = newest
        self.revision = revision
        self.entries = entries
    }
}
