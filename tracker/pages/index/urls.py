"""URLs of the performance index."""

from django.urls import path, re_path

from tracker.pages.index import views

urlpatterns = [
    path("index/", views.index, name="index"),
    path("index.json", views.as_json, name="index-as"),
    path("index/basket/", views.show_basket, name="index-basket"),
    path("index/comment/", views.comment, name="index-comment"),
    re_path(r"^index/(?P<version>v\d{1,3}\.\d{1,4}[\w.-]{0,20})/$", views.point, name="index-point"),
]
