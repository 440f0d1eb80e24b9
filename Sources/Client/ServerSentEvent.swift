/// One event of a `text/event-stream`, as the WHATWG HTML standard (section 9.2) delivers it.
package struct ServerSentEvent: Hashable, Sendable {
    /// What `event:` said; `message` where it said nothing.
    package let name: String
    package let data: String
    /// The last `id:` of the stream up to here; empty when there was none.
    package let id: String

    package init(name: String, data: String, id: String) {
        self.name = name
        self.data = data
        self.id = id
    }
}
