/// In JSON `"bearer"`, `{"user": 1001}` or `{"key": "…"}`.
extension GrantBinding {
    private enum Keys: String, CodingKey { case user, key }

    package init(from decoder: any Decoder) throws {
        if let word = try? decoder.singleValueContainer().decode(String.self) {
            guard word == "bearer" else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a binding's only word is \"bearer\"")
                )
            }
            self = .bearer
            return
        }
        let container = try decoder.container(keyedBy: Keys.self)
        if let user = try container.decodeIfPresent(UInt32.self, forKey: .user) {
            self = .user(user)
        } else {
            self = .key(try container.decode(String.self, forKey: .key))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .bearer:
            var container = encoder.singleValueContainer()
            try container.encode("bearer")
        case .user(let user):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(user, forKey: .user)
        case .key(let key):
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(key, forKey: .key)
        }
    }
}
