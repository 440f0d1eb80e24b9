/// One way in which the server of an app deviates from its protocol, with the number of times that Patchbay repaired it.
package struct ServerDeviation: Hashable, Sendable, Codable {
    /// The deviations that Patchbay repairs. The raw values end a sentence that begins with "this server".
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case textIDs = "answers ids as text"
        case refusedVersion = "refuses newer versions of MCP"
        case unknownVersion = "answers with an unknown version of MCP"
        case refusedDiscovery = "closes the connection after an unknown method"
        case redirect = "redirects MCP requests to another path"
        case contentCoding = "compresses answers although it was not asked to"
        case contentType = "sends answers with a wrong content type"
        case byteOrderMark = "begins answers with a byte order mark"
        case foreignText = "sends text between its messages"
        case invalidRPC = "sends messages that are not quite JSON-RPC 2.0"
        case duplicateNames = "repeats a name in an object"
        case invalidSyntax = "sends values that are not JSON"
        case invalidUTF8 = "sends text that is not UTF-8"
        case deepNesting = "nests values too deep"
        case damagedList = "lists tools, prompts or resources in a form that clients refuse"
        case looseBase64 = "sends content whose base64 is not standard"
        case invalidResult = "sends results of tools that MCP's schema does not allow"
    }

    /// The deviation: the raw value of a `Kind`. A newer broker may send further texts.
    package let text: String
    /// The number of repairs since the launch of the app.
    package let count: Int

    package init(_ kind: Kind, count: Int) {
        text = kind.rawValue
        self.count = count
    }
}
