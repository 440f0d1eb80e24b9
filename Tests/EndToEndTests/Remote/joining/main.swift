// Plays an app with the files of docs/joining. PinnedSession needs Apple's Security framework, so curl checks the pin.
//
// usage: app PAIRING DEVICE APP-JSON [TOKEN]
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = CommandLine.arguments
guard let code = PairingCode(arguments[1]) else { fatalError("not a pairing string") }

@Sendable func send(_ request: URLRequest) async throws -> (Data, URLResponse) {
    let (curl, output) = (Process(), Pipe())
    guard let url = request.url, let method = request.httpMethod else { throw URLError(.badURL) }
    curl.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
    let pin = "sha256//" + Data(code.pin).base64EncodedString()
    curl.arguments =
        ["-sSk", "--pinnedpubkey", pin, "-w", "\n%{http_code}", "-X", method]
        + (request.allHTTPHeaderFields ?? [:]).flatMap { ["-H", "\($0.key): \($0.value)"] }
        + (request.httpBody.map { ["-d", String(decoding: $0, as: UTF8.self)] } ?? []) + [url.absoluteString]
    curl.standardOutput = output
    try curl.run()
    let lines = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        .components(separatedBy: "\n")
    curl.waitUntilExit()
    guard curl.terminationStatus == 0, let status = lines.last.flatMap({ Int($0) }) else {
        throw URLError(.secureConnectionFailed)
    }
    print(method, url.path, status)
    guard let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: nil) else {
        throw URLError(.badServerResponse)
    }
    return (Data(lines.dropLast().joined(separator: "\n").utf8), response)
}

let registration = PatchbayRegistration(broker: code.broker, send: send)
var token = arguments.count > 4 ? arguments[4] : nil
if token == nil { token = try await registration.redeem(code.invite, device: arguments[2]) }
guard let token else { fatalError("the broker returned no token") }
print("token", token)
guard let app = try JSONSerialization.jsonObject(with: Data(arguments[3].utf8)) as? [String: Any] else {
    fatalError("the app is not a JSON object")
}
try await registration.run(app, token: token)
