/// Something about a server that subscribers may want to hear.
package enum ServerChange: Hashable, Sendable {
    case tools
    case prompts
    case resources
    /// The resource of that address.
    case resource(String)
}
