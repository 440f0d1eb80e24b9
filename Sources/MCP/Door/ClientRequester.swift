import JSON

/// The way on which an app asks the one who asked it, while the request runs.
package struct ClientRequester: Sendable {
    typealias Question =
        @Sendable (_ method: String, _ params: JSONObject?, _ isBound: Bool) async ->
        Result<JSON, RPCError>

    /// What joins the requests of one client of one holder: they have one session at an app, and share it with nobody.
    let key: String
    /// What the client and we agreed on, which is what an app is asked to speak.
    let revision: ProtocolVersion
    let faculties: ClientCapabilities
    /// Whether everything under that key is one client, so that any of its requests may carry a question; else each has a
    /// session of its own while it runs.
    let isOneClient: Bool
    /// Whether results that ask (2026-07-28, `input_required`) are answered on this way too; else they are passed on.
    let takesResults: Bool
    /// Brings a question to the client, and its answer back: one that is bound to the request ends with it, another may be
    /// about any request of that client. A cancelled task means that nobody wants the answer any more.
    let ask: Question
}
