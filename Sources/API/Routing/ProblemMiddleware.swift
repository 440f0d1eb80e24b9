import AccessControl
import FoundationEssentials
import HTTPTypes
import Hummingbird
import Logging
import MCP
import Model
import NIOCore
import NIOHTTP1
import Registry
import Tunnels

/// Says every error as `application/problem+json` (RFC 9457): the one place where errors become HTTP.
struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request,
        context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            return try Self.response(error, to: request, logger: context.logger)
        }
    }

    private static func problem(_ error: any Error, _ request: Request) -> Problem {
        switch error {
        case let problem as Problem: problem
        case let error as RegistryError: error.problem
        case let error as TunnelError: error.problem
        case let error as AccessError: error.problem
        case let failure as AppError: failure.problem
        case let failure as DialError: Problem(.unavailable, failure.description)
        case let error as HTTPError where error.status == .notFound: notFound(request)
        case let error as HTTPError where error.status.code < 500:
            Problem(.badRequest, error.body ?? error.status.reasonPhrase)
        // The caller has gone, and reads no answer.
        case is CancellationError: Problem(.unavailable, "the request was cancelled, because its caller has gone")
        // A body that ends nowhere, or is cut wrong.
        case let error as HTTPParserError: Problem(.badRequest, "the body cannot be read: \(error)")
        default: Problem(.internalError, "Patchbay failed: \(error)", next: "journalctl -u patchbayd")
        }
    }

    static func response(_ error: any Error, to request: Request, logger: Logger) throws -> Response {
        let problem = problem(error, request)
        if problem.code == .internalError {
            logger.error("request failed", metadata: ["path": "\(request.uri.path)", "error": "\(error)"])
        }
        var headers: HTTPFields = [.contentType: "application/problem+json"]
        // RFC 9110, section 15.5.6: it must say what would have been allowed.
        if problem.code == .methodNotAllowed { headers[.allow] = methods(at: request).joined(separator: ", ") }
        // RFC 9110, section 11.6.1: and here, how to show a token.
        if problem.code == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
        if let seconds = (error as? AccessError)?.pause { headers[.retryAfter] = "\(seconds)" }
        return Response(
            status: HTTPResponse.Status(code: problem.status),
            headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONCoding.encoder().encode(problem)))
        )
    }

    /// The router knows one "not found" for a wrong path and for a right path with a wrong method.
    private static func notFound(_ request: Request) -> Problem {
        let path = request.uri.path
        let methods = methods(at: request)
        if methods.isEmpty {
            return Problem(
                .notFound,
                "there is nothing at \(SanitizedText(path, limit: 200))",
                next: "GET /openapi.json"
            )
        }
        return Problem(
            .methodNotAllowed,
            "\(SanitizedText(path, limit: 200)) takes \(methods.joined(separator: ", ")), not \(request.method)"
        )
    }

    private static func methods(at request: Request) -> [String] {
        RouteTable.all.filter { $0.matches(request.uri.path) }.map(\.method.rawValue)
    }
}

extension APIRoute {
    /// Whether this is the route of a concrete path.
    func matches(_ concrete: String) -> Bool {
        let pattern = path.split(separator: "/")
        let parts = concrete.split(separator: "/")
        return pattern.count == parts.count && zip(pattern, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
}

extension AppError {
    fileprivate var problem: Problem {
        let code: Problem.Code =
            switch self {
            case .away, .tooSlow, .mute, .lostAfterDelivery: .unavailable
            case .notApproved, .mismatch, .needsSecret, .notPermitted: .forbidden
            case .noTools, .unclear: .conflict
            case .busy: .limit
            }
        return Problem(code, description, next: next(for: .person))
    }
}

extension RegistryError {
    fileprivate var problem: Problem {
        switch self {
        case .noSuchEndpoint: Problem(.notFound, description, next: "patchbay list")
        case .stillSeen(let id): Problem(.conflict, description, next: "patchbay show \(id)")
        case .nameTaken: Problem(.conflict, description, next: "patchbay list")
        }
    }
}

extension AccessError {
    /// As the HTTP API says it. Whatever is wrong with a token is one and the same answer, to the byte.
    var problem: Problem {
        switch self {
        case .refused, .notAToken: Problem(.unauthorized, AccessError.refused.description, next: "patchbay join -")
        case .tooManyAttempts: Problem(.limit, description)
        case .slowDown: Problem(.slowDown, description)
        case .limit: Problem(.limit, description)
        case .notAPairingString, .outOfRange: Problem(.badRequest, description)
        case .tooWide, .secretNotPresentable: Problem(.forbidden, description)
        case .requestsClosed: Problem(.forbidden, description, next: "patchbay requests --reopen")
        case .notFound: Problem(.notFound, description)
        case .askerGone: Problem(.conflict, description)
        case .notSaved: Problem(.unavailable, description, next: "make room on the disk, and try again")
        case .notRead: Problem(.unavailable, description, next: "patchbay doctor")
        case .exposed, .inUse, .keyMissing, .keyChanged: Problem(.internalError, description, next: "patchbay doctor")
        }
    }

    /// Seconds after which it is worth another try.
    var pause: Int? {
        switch self {
        case .tooManyAttempts(let seconds), .slowDown(let seconds): seconds
        default: nil
        }
    }
}
