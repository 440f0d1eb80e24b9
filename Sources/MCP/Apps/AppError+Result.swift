package import JSON

extension AppError {
    /// As the result of a tool that could not be called, whose text the reader is shown.
    package func result(for reader: Reader) -> JSONObject {
        AppProxy.result(saying: sentence(for: reader), code: code)
    }
}
