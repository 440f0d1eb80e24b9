extension QRCode {
    /// The code and its frame as an SVG image, one unit for each module; it scales to any size, and has no script in it.
    package func svg() -> String {
        let path = (0..<fullSize).map(runs).joined()
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(fullSize) \(fullSize)" shape-rendering="crispEdges">\
            <rect width="\(fullSize)" height="\(fullSize)" fill="#fff"/><path d="\(path)" fill="#000"/></svg>
            """
    }

    /// The dark runs of one row as rectangles.
    private func runs(in row: Int) -> String {
        var path = ""
        var column = 0
        while column < fullSize {
            let start = column
            while isDark(column, row) { column += 1 }
            if column > start { path += "M\(start) \(row)h\(column - start)v1h-\(column - start)z" }
            column += 1
        }
        return path
    }
}
