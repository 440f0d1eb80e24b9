import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Registers an app with one broker. `send` performs the requests; on Apple platforms it is `PinnedSession.send`.
struct PatchbayRegistration {
    let broker: URL
    let send: (URLRequest) async throws -> (Data, URLResponse)

    /// Redeems the invite of `patchbay pair --device` once. Keep the returned token in the keychain.
    func redeem(_ invite: String, device: String) async throws -> String? {
        let client = UUID().uuidString.filter { $0 != "-" }
        let body = ["token": invite, "client": client, "name": device]
        return try await request("POST", "v1/invites/redeem", body)["token"] as? String
    }

    /// Registers this launch, and keeps the registration until the task is cancelled or the broker refuses.
    func run(_ app: [String: Any], token: String) async throws {
        while let id = try await request("POST", "v1/registrations", app, token)["id"] as? String {
            repeat { try await Task.sleep(nanoseconds: 30_000_000_000) }
            while (try? await request("PUT", "v1/registrations/\(id)", nil, token)) != nil
        }
    }

    private func request(
        _ method: String, _ path: String, _ body: Any?, _ token: String = ""
    ) async throws -> [String: Any] {
        var request = URLRequest(url: broker.appendingPathComponent(path))
        request.httpMethod = method
        request.httpBody = try body.map { try JSONSerialization.data(withJSONObject: $0) }
        if body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
        if !token.isEmpty { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, response) = try await send(request)
        guard let status = (response as? HTTPURLResponse)?.statusCode, status < 300 else { throw URLError(.unknown) }
        return (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
    }
}
