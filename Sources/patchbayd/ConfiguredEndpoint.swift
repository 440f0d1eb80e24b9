import Model

/// An `[[endpoint]]` table.
struct ConfiguredEndpoint: Decodable {
    let endpoint: StaticEndpoint

    private enum CodingKeys: String, CodingKey {
        case name, kind, address, port, app
    }

    init(from decoder: any Decoder) throws {
        let keys = try decoder.container(keyedBy: CodingKeys.self)
        let port = try keys.required(.port, "a number from 1 to 65535", as: ConfiguredPort.self).number
        endpoint = StaticEndpoint(
            name: try keys.required(.name, "a text in quotes"),
            kind: try keys.value(.kind, "a text in quotes, such as \"mcp\"") ?? .tcp,
            address: try keys.required(.address, "a numeric address in quotes, or \"localhost\""),
            port: port,
            app: try keys.value(.app, "a bundle identifier in quotes")
        )
    }
}
