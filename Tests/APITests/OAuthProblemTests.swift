import AccessControl
import FoundationEssentials
import Model
import Testing

@testable import API

@Suite struct OAuthProblemTests {
    private func members(of problem: Problem) throws -> [String: String] {
        struct Members: Decodable {
            let error: String
            let error_description: String
            let detail: String
        }
        let data = try JSONCoding.encoder().encode(OAuthProblem(problem))
        let members = try JSONDecoder().decode(Members.self, from: data)
        return ["error": members.error, "description": members.error_description, "detail": members.detail]
    }

    @Test func `an OAuth client gets the detail and the next step as its own error`() throws {
        let refused = try members(of: AccessError.refused.problem)
        #expect(refused["error"] == "invalid_token")
        #expect(refused["description"]?.hasPrefix(try #require(refused["detail"])) == true)
        #expect(refused["description"]?.contains("patchbay pair") == true)

        let unsupported = try members(of: OAuthProblem.unsupported)
        #expect(unsupported["error"] == "access_denied")
        #expect(unsupported["description"]?.contains("patchbay join -") == true)
    }

    @Test(arguments: [
        ("/register", true, true), ("/.well-known/oauth-authorization-server/mcp", true, true),
        ("/mcp/.well-known/openid-configuration", true, true), ("/.well-known/ai-catalog.json", true, false),
        ("/mcp", false, false), ("/v1/registrations", false, false), ("/register/x", false, false),
    ])
    func `the paths of OAuth are recognised`(path: String, isAsked: Bool, isOfOAuth: Bool) {
        #expect(OAuthProblem.isAsked(at: path) == isAsked)
        #expect(OAuthProblem.isOfOAuth(path) == isOfOAuth)
    }
}
