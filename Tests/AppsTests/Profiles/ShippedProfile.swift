@testable import Apps
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The profiles in `config/profiles`, as they are installed.
enum ShippedProfile {
    static let names = ["app-debug", "debugbridge", "devicekit", "mobilecli", "simlock", "webdriveragent"]

    static func text(_ name: String) throws -> String {
        let path = "\(TestSupportFolder.package)/config/profiles/\(name).toml"
        let data = try #require(FileManager.default.contents(atPath: path))
        return String(decoding: data, as: UTF8.self)
    }

    static func load(_ name: String) throws -> Profile { try Profile(parsing: try text(name), file: "\(name).toml") }
}

extension AppResponse {
    /// A response with a JSON body.
    static func json(_ text: String, status: Int = 200) -> AppResponse {
        AppResponse(status: status, contentType: "application/json", body: Array(text.utf8))
    }
}

extension ProfileRequest {
    /// The bytes of the request as text, with the names of this test's host and version.
    func text(secret: String? = nil) -> String {
        String(decoding: httpRequest(secret: secret).bytes(host: "127.0.0.1:9876"), as: UTF8.self)
    }
}

extension ProfileResult {
    /// The result as JSON text; the size of a video.
    var text: String {
        switch self {
        case .content(let object): JSON.object(object).text
        case .video(let bytes): "video of \(bytes.count) bytes"
        }
    }
}
