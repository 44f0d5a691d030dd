def text(kept):
    return ""
