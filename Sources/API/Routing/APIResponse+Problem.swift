import AccessControl
import Apps
import Discovery
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Logging
import Model
import NIOCore
import NIOHTTP1
import Registry
import Team
import Tunnels

extension APIResponse {
    /// Turns every error into `application/problem+json` (RFC 9457). No other code maps errors to HTTP.
    static func problem(_ error: any Error, of request: Request, issuer: OAuthIssuer?, logger: Logger) throws
        -> APIResponse
    {
        if let error = error as? OAuthError { return error.response }
        let (problem, path) = (problem(error), request.uri.path)
        if problem.code == .internalError {
            logger.error("request failed", metadata: ["path": "\(path)", "error": "\(error)"])
        }
        RefusalMetrics.refused(problem)
        var headers = HTTPFields()
        // RFC 9110, section 15.5.6: the response must list the allowed methods.
        if problem.code == .methodNotAllowed {
            headers[.allow] = RouteTable.methods(at: path, withOAuth: issuer != nil).joined(separator: ", ")
        }
        // RFC 9110, section 15.5.22: the response must name the protocol.
        if problem.code == .upgradeRequired {
            headers[.connection] = "Upgrade"
            headers[.upgrade] = TunnelTarget.streamProtocol
        }
        // RFC 9110, section 11.6.1: the response must name the authentication scheme.
        if problem.code == .unauthorized { headers[.wwwAuthenticate] = challenge(to: request, issuer) }
        let stepUp = error as? InsufficientScope
        if let stepUp, let issuer {
            headers[.wwwAuthenticate] = issuer.challenge(at: path, error: .insufficientScope, scopes: stepUp.scopes)
        }
        if let seconds = (error as? AccessError)?.retryAfterSeconds { headers[.retryAfter] = "\(seconds)" }
        let encoder = JSONCoding.encoder()
        // With the members of OAuth on the paths that its clients ask.
        let isOAuth =
            OAuthProblem.isAsked(at: path) || issuer != nil && path.hasPrefix("/oauth/")
            || problem.code == .unauthorized && OAuthIssuer.isResource(path) || stepUp != nil
        let oauth = OAuthProblem(problem, error: stepUp.map { _ in .insufficientScope })
        let body = try isOAuth ? encoder.encode(oauth) : encoder.encode(problem)
        return .body(
            ByteBuffer(bytes: body),
            type: "application/problem+json",
            status: HTTPResponse.Status(code: problem.status),
            headers: headers
        )
    }

    /// Returns the challenge of a 401. Only that of an MCP server tells how to get a token.
    private static func challenge(to request: Request, _ issuer: OAuthIssuer?) -> String {
        let path = request.uri.path
        guard let issuer, OAuthIssuer.isResource(path) else { return "Bearer" }
        let error: OAuthProblem.Code? = request.headers[.authorization] == nil ? nil : .invalidToken
        return issuer.challenge(at: path, error: error, scopes: OAuthService.defaultScopes)
    }

    private static func problem(_ error: any Error) -> Problem {
        switch error {
        case let problem as Problem: problem
        case let error as InsufficientScope: error.problem
        case let error as RegistryError: error.problem
        case let error as TunnelError: error.problem
        case let error as RegistrationError: error.problem
        case let error as DiscoveryError: error.problem
        case let error as AccessError: error.problem
        case let error as HostError: error.problem
        case let failure as DialError: Problem(failure)
        case let error as DevToolsError: Problem(.unavailable, error.description)
        // The client has disconnected and reads no response.
        case is CancellationError: Problem(.unavailable, "the request was cancelled because the client disconnected")
        // A body without a valid end, or with invalid chunks.
        case let error as HTTPParserError: Problem(.badRequest, "the body cannot be read: \(error)")
        default: Problem(.internalError, "Patchbay failed: \(error)", hint: "journalctl -u patchbayd")
        }
    }
}

extension AppError {
    /// The error as an HTTP problem of an endpoint.
    func problem(at id: EndpointID) -> Problem {
        switch self {
        case .refused(_, let problem), .leaseRefused(let problem): return problem
        default: break
        }
        let code: Problem.Code =
            switch self {
            case .unreachable, .noHandshake, .permissionChanged, .timedOut, .responseLost, .refused, .leaseRefused:
                .unavailable
            case .accessEnded, .notApproved, .denied, .mismatch, .tokenRequired, .forbidden, .toolNotAllowed: .forbidden
            case .invalidArguments: .badRequest
            case .notMCP, .invalidResponse: .conflict
            case .leased: .leased
            case .busy: .limit
            }
        return Problem(code, description(at: id), hint: hint(for: .human, at: id))
    }
}

extension RegistrationError {
    fileprivate var problem: Problem {
        let code: Problem.Code =
            switch self {
            case .invalid, .unknownKind: .badRequest
            case .address, .ownPort: .forbidden
            case .notFound: .notFound
            case .moved: .conflict
            case .tooManyPerGrant, .tooManyDifferent, .tooMany: .limit
            case .tooOften: .slowDown
            }
        return Problem(code, description, hint: hint)
    }
}

extension DiscoveryError {
    fileprivate var problem: Problem {
        let code: Problem.Code =
            switch self {
            case .notPublishable: .badRequest
            case .noSuchAdvertisement: .notFound
            case .tooManyAdvertisements: .limit
            case .alreadyRun: .internalError
            }
        return Problem(code, description, hint: hint)
    }
}

extension RegistryError {
    fileprivate var problem: Problem {
        switch self {
        case .noSuchEndpoint: Problem(.notFound, description, hint: "patchbay list")
        case .stillPresent(let id): Problem(.conflict, description, hint: "patchbay show \(id)")
        case .nameTaken: Problem(.conflict, description, hint: "patchbay list")
        case .onOtherHost(_, let host): Problem(.conflict, description, hint: "add --broker ssh://USER@\(host)")
        case .hostOffline, .hostNotKnown: Problem(.unavailable, description, hint: "patchbay team")
        case .noSuchHost: Problem(.notFound, description, hint: "patchbay team")
        }
    }
}

extension AccessError {
    /// The next step of a client without a valid token.
    static let tokenHint =
        "ask an owner for a new invite (patchbay pair, with --bearer for a token on another machine), then patchbay join -"

    /// The error as an HTTP problem. All errors of a wrong token give the same response, byte for byte.
    var problem: Problem {
        switch self {
        case .refused, .notAToken:
            Problem(
                .unauthorized,
                AccessError.refused.description,
                hint: AccessError.tokenHint
            )
        case .inviteEnded: Problem(.unauthorized, description, hint: Problem.newInviteHint)
        case .tooManyAttempts: Problem(.limit, description)
        case .slowDown: Problem(.slowDown, description)
        case .limit: Problem(.limit, description)
        case .leased(let conflict): conflict.problem
        case .notLeaseHolder(let conflict):
            Problem(.forbidden, description, hint: "an owner can end it: patchbay unlease \(conflict.name)")
        case .claimNotStored: Problem(.unavailable, description, hint: "patchbay team status")
        case .leaseNeedsChangingTools:
            Problem(.forbidden, description, hint: "let an owner pair this client without --read-only: patchbay pair")
        case .outOfRange: Problem(.badRequest, description)
        case .tooWide, .secretNotPresentable: Problem(.forbidden, description)
        case .keyRequired:
            Problem(.forbidden, description, hint: "patchbay join -, or an invite of patchbay pair --bearer")
        case .appRequired:
            Problem(.forbidden, description, hint: "give it to the app; for this client: patchbay pair --remote")
        case .requestsClosed: Problem(.forbidden, description, hint: "patchbay requests unlock")
        case .notFound: Problem(.notFound, description)
        case .noSuchGrant:
            Problem(.notFound, description, hint: "`patchbay grants` and `patchbay invites` list the IDs")
        case .requesterExited: Problem(.conflict, description)
        case .notSaved: Problem(.unavailable, description, hint: "make room on the disk, and try again")
        case .notRead: Problem(.unavailable, description, hint: "patchbay doctor")
        case .exposed, .inUse, .keyMissing, .keyChanged: Problem(.internalError, description, hint: "patchbay doctor")
        }
    }

    /// The number of seconds for Retry-After; nil if there is none.
    var retryAfterSeconds: Int? {
        switch self {
        case .tooManyAttempts(let seconds), .slowDown(let seconds): seconds
        default: nil
        }
    }
}
