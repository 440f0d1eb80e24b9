import AccessControl
import HTTPTypes
import Model
import Testing

@testable import API

@Suite struct ExposedTokenTests {
    private func found(_ path: String, cookie: String? = nil) -> [Token]? {
        var request = HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: path)
        if let cookie { request.headerFields[.cookie] = cookie }
        return LeakedTokenDetector.find(in: request)
    }

    @Test(arguments: Token.Kind.allCases)
    func `a token is found anywhere in a URL or a cookie, escaped or not`(kind: Token.Kind) throws {
        let token = Token(random: kind)
        let text = token.reveal()
        let escaped = text.utf8.map { "%" + String($0, radix: 16, uppercase: true) }.joined()

        for path in [
            "/v1/\(text)", "/v1/endpoints?token=\(text)&x=1", "/v1/endpoints?a=pb&t=x\(text)y", "/?\(escaped)",
        ] { #expect(found(path)?.map(\.id) == [token.id], "\(path.count)") }
        #expect(found("/", cookie: "a=b; t=\(text)")?.map(\.id) == [token.id])
    }

    @Test(arguments: [("%D8%80", ""), ("", "%CC%81"), ("%E2%80%8D", "%E2%80%8D")])
    func `a combining character does not hide a token`(before: String, after: String) {
        let token = Token(random: .grant)
        let escaped = token.reveal().utf8.map { "%" + String($0, radix: 16) }.joined()

        #expect(found("/?t=\(before)\(escaped)\(after)")?.map(\.id) == [token.id])
    }

    @Test func `a mistyped token is detected but not revoked`() {
        let text = Token(random: .grant).reveal()

        #expect(found("/?t=\(text.dropLast())")?.isEmpty == true)
        #expect(found("/?t=\(text.dropLast(30))")?.isEmpty == true)
    }

    @Test(arguments: ["/v1/endpoints", "/v1/grants/abcdefgh", "/?app=pbi_x", "/?pbg_", "/pb/pb/pb", "/%zz%"])
    func `a URL without a token is accepted`(path: String) { #expect(found(path) == nil) }
}
