/// Any value as a document of ours: its own members, and `"schema": 1`, which says that they are these.
struct SchemaDocument<Content: Encodable>: Encodable {
    private enum Keys: String, CodingKey { case schema }

    let content: Content

    init(_ content: Content) { self.content = content }

    func encode(to encoder: any Encoder) throws {
        try content.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(1, forKey: .schema)
    }
}
