import Model

/// A port in the configuration.
///
/// Read as a wide integer first: TOMLKit 0.6 traps, and with it the daemon, when a number does not fit the narrow type that it
/// is asked for.
struct ConfiguredPort: Decodable {
    let number: UInt16

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let wide = try container.decode(Int.self)
        guard let number = UInt16(exactly: wide), number > 0 else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\(wide) is no port; ports are 1 to 65535"
            )
        }
        self.number = number
    }
}
